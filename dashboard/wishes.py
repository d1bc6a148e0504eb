"""The panel's own settings, where monitoring asks for them. What the environment says wins."""

from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_noop as _

from dashboard import env, panel_settings
from dashboard.secrets import SecretError, reveal
from engine import logs
from monitoring.alerts.notify.errors import UndeliverableError
from monitoring.wishes import MailServer, SettingsWishes

LEVELS = {
    "second": "keep_seconds_days",
    "minute": "keep_minutes_days",
    "hour": "keep_hours_days",
}
NOT_AN_ADDRESS = _(
    "The secret %(name)s does not hold the address of a mail server, such as "
    "smtp://user:password@host:587."
)


class PanelWishes(SettingsWishes):
    def keep(self, level: str) -> timedelta:
        return days(LEVELS[level])

    def public_url(self) -> str:
        return super().public_url() or str(panel_settings.current()["public_url"] or "").rstrip("/")

    def mail_server(self) -> MailServer | None:
        if found := super().mail_server():
            return found
        name = panel_settings.current()["smtp_url"]
        return _server(str(name)) if name else None


def days(name: str) -> timedelta:
    """A setting that counts days."""
    return timedelta(days=int(str(panel_settings.current()[name])))


def mail_chosen() -> bool:
    """Whether a mail server is set; whether it takes anything, only a test tells."""
    return bool(settings.EMAIL_HOST or panel_settings.current()["smtp_url"])


def _server(name: str) -> MailServer:
    """The one whose address is a stored secret. Raises UndeliverableError."""
    try:
        found = env.mail_of(reveal(name), name)
    except SecretError as error:
        raise UndeliverableError(error.sentence.message, name=name) from error
    except ImproperlyConfigured as error:
        raise UndeliverableError(NOT_AN_ADDRESS, name=name) from error
    if not found["EMAIL_HOST"]:
        raise UndeliverableError(NOT_AN_ADDRESS, name=name)
    logs.hide(str(found["EMAIL_HOST_PASSWORD"]))
    return MailServer(
        host=str(found["EMAIL_HOST"]),
        port=int(str(found["EMAIL_PORT"])),
        username=str(found["EMAIL_HOST_USER"]),
        password=str(found["EMAIL_HOST_PASSWORD"]),
        tls=bool(found["EMAIL_USE_TLS"]),
        ssl=bool(found["EMAIL_USE_SSL"]),
        sender=env.text("TANDEM_MAIL_FROM")
        or str(panel_settings.current()["mail_from"] or settings.DEFAULT_FROM_EMAIL),
    )
