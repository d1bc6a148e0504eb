"""A message by e-mail, through the mail server of the settings."""

import smtplib
from typing import Any
from uuid import UUID

from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.utils.translation import gettext_noop as _

from monitoring import wishes
from monitoring.alerts.notify.errors import UndeliverableError
from monitoring.alerts.notify.message import Message
from monitoring.wishes import MailServer

SECONDS = 10

NO_SERVER = _("No mail server is set. Choose one under Settings, or set TANDEM_SMTP_URL.")
REFUSED = _("The mail server refused it: %(why)s.")
UNREACHABLE = _("The mail server %(host)s cannot be reached: %(why)s.")
TAKEN = _("The mail server took it for %(count)s recipients.")


def send(message: Message, recipients: list[str], key: UUID) -> tuple[str, dict[str, Any]]:
    """What may be shown of the answer; raises UndeliverableError."""
    server = wishes.current().mail_server()
    if server is None:
        raise UndeliverableError(NO_SERVER, final=True)
    mail = EmailMessage(
        subject=" ".join(message.title.split()),
        body="\n".join([*message.lines, "", message.url]).strip() + "\n",
        from_email=server.sender,
        to=recipients,
        connection=_connection(server),
        headers={"Message-ID": f"<{key}@tandem>", "Auto-Submitted": "auto-generated"},
    )
    try:
        mail.send()
    except smtplib.SMTPResponseException as error:
        raise UndeliverableError(REFUSED, why=_said(error.smtp_error)) from error
    except smtplib.SMTPRecipientsRefused as error:
        [(_code, words), *_more] = error.recipients.values()
        raise UndeliverableError(REFUSED, why=_said(words)) from error
    except (OSError, smtplib.SMTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UndeliverableError(UNREACHABLE, host=server.host, why=why) from error
    return TAKEN, {"count": len(recipients)}


def _connection(server: MailServer) -> BaseEmailBackend:
    connection: BaseEmailBackend = get_connection(
        timeout=SECONDS,
        host=server.host,
        port=server.port,
        username=server.username,
        password=server.password,
        use_tls=server.tls,
        use_ssl=server.ssl,
    )
    return connection


def _said(words: bytes | str) -> str:
    text = words.decode(errors="replace") if isinstance(words, bytes) else words
    return " ".join(text.split())[:200]
