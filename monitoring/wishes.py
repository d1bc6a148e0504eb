"""What whoever runs this has decided: how long readings are kept, where people reach the panel, who
takes its mail. Django's settings say so, until somebody registers who knows better."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from django.conf import settings


@dataclass(frozen=True)
class MailServer:
    host: str
    port: int
    username: str
    password: str
    tls: bool
    """STARTTLS is required."""
    ssl: bool
    """TLS from the first byte."""
    sender: str


class Wishes(Protocol):
    def keep(self, level: str) -> timedelta:
        """How long readings of a level are kept: `second`, `minute`, `hour`."""

    def public_url(self) -> str:
        """Empty where nobody has said it."""

    def mail_server(self) -> MailServer | None:
        """Raises UndeliverableError where what was chosen cannot be used."""


class SettingsWishes:
    def keep(self, level: str) -> timedelta:
        kept: timedelta = settings.TELEMETRY_KEEP[level]
        return kept

    def public_url(self) -> str:
        return str(settings.PUBLIC_URL)

    def mail_server(self) -> MailServer | None:
        if not settings.EMAIL_HOST:
            return None
        return MailServer(
            host=str(settings.EMAIL_HOST),
            port=int(str(settings.EMAIL_PORT)),
            username=str(settings.EMAIL_HOST_USER),
            password=str(settings.EMAIL_HOST_PASSWORD),
            tls=bool(settings.EMAIL_USE_TLS),
            ssl=bool(settings.EMAIL_USE_SSL),
            sender=settings.DEFAULT_FROM_EMAIL,
        )


_wishes: Wishes = SettingsWishes()


def register(wishes: Wishes) -> None:
    global _wishes
    _wishes = wishes


def current() -> Wishes:
    return _wishes
