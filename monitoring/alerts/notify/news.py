"""What is told once and fires nowhere: somebody has to decide something, or something is done."""

from collections.abc import Callable
from datetime import datetime

import msgspec
from django.utils import timezone
from django.utils.translation import override

from monitoring.alerts.notify.message import Message, link
from monitoring.models import Channel, Delivery, Occasion, Severity


def tell(
    severity: Severity,
    *,
    title: Callable[[], str],
    lines: Callable[[], list[str]],
    about: str = "",
    path: str,
) -> None:
    """To every channel that tells of this severity at once, in its language. Call it in the
    transaction of the change that it is about: it is told exactly if that happened."""
    now = timezone.now()
    channels = Channel.objects.filter(enabled=True, after_minutes=0)
    Delivery.objects.bulk_create(
        Delivery(
            channel=channel,
            occasion=Occasion.NEWS,
            message=msgspec.to_builtins(
                _message(channel, severity, title, lines, about, path, now)
            ),
            due=now,
            created=now,
        )
        for channel in channels
        if Severity(channel.least).rank <= severity.rank
    )


def _message(
    channel: Channel,
    severity: Severity,
    title: Callable[[], str],
    lines: Callable[[], list[str]],
    about: str,
    path: str,
    now: datetime,
) -> Message:
    with override(channel.language):
        return Message(
            occasion=str(Occasion.NEWS),
            severity=str(severity),
            title=title(),
            lines=lines(),
            incident=None,
            about=about,
            opened=now.isoformat(),
            at=now.isoformat(),
            url=link(path),
        )
