"""Carries out what was planned: at least once, with pauses that grow, and given up after a day."""

import logging
import threading
import time
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from monitoring.alerts.notify import http, mail
from monitoring.alerts.notify.errors import UndeliverableError
from monitoring.alerts.notify.formats import FORMATS, in_words, refusal
from monitoring.alerts.notify.message import read, trial
from monitoring.models import Channel, ChannelKind, Delivery, DeliveryStatus, Occasion
from monitoring.vault import SealError, unseal

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
"""A worker that dies while it sends leaves the message to the next one after that time."""
PAUSES = (10, 30, 120, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
"""Seconds before the second, third … attempt; the one after the last pause is the last."""
BUDGET = 25.0
"""Seconds for one round."""
KEPT = timedelta(days=90)

SWITCHED_OFF = _("The channel was switched off.")
SEALED = _(
    "Its address and secret cannot be read: the panel’s secret key has changed. Enter them again."
)
REFUSED = _("It was refused: %(why)s.")
TAKEN = _("It was taken: %(words)s")


class Address(msgspec.Struct, frozen=True):
    """What is sealed in a channel."""

    url: str = ""
    secret: str = ""
    recipients: list[str] = []


at_work = threading.Lock()
"""Receivers that keep a sender waiting must not take up all of a worker's threads."""


def deliver(now: datetime | None = None) -> int:
    """Send what is due; how many were taken. Nothing while this process is at it already."""
    if not at_work.acquire(blocking=False):
        return 0
    try:
        return _deliver(now)
    finally:
        at_work.release()


def _deliver(now: datetime | None) -> int:
    until = time.monotonic() + BUDGET
    taken = 0
    while time.monotonic() < until:
        delivery = _claim(now or timezone.now())
        if delivery is None:
            break
        taken += _attempt(delivery, now or timezone.now())
    return taken


def try_out(channel: Channel) -> Delivery:
    """Send a real test message at once; the row says what came of it."""
    now = timezone.now()
    delivery = Delivery.objects.create(
        channel=channel,
        occasion=Occasion.TEST,
        message=trial(channel.name, channel.language, now),
        due=now + LEASE,
        created=now,
        attempts=1,
    )
    _attempt(delivery, now, last=True)
    return delivery


def forget(now: datetime) -> None:
    Delivery.objects.filter(created__lt=now - KEPT).delete()


@transaction.atomic
def _claim(now: datetime) -> Delivery | None:
    """The one that has waited longest, held for the length of the lease."""
    due = Delivery.objects.filter(status=DeliveryStatus.PENDING, due__lte=now).order_by("due", "pk")
    delivery = due.select_for_update(skip_locked=True, of=("self",)).first()
    if delivery is not None:
        delivery.attempts += 1
        delivery.due = now + LEASE
        delivery.save(update_fields=["attempts", "due"])
    return delivery


def _attempt(delivery: Delivery, now: datetime, last: bool = False) -> bool:
    try:
        answer, parts = _send(delivery, now)
        delivery.answer, delivery.parts = answer, _storable(parts)
    except UndeliverableError as error:
        log.warning("A message to the channel %s was not taken: %s", delivery.channel, error)
        delivery.answer, delivery.parts = error.template, _storable(error.parts)
        if last or error.final or delivery.attempts > len(PAUSES):
            delivery.status = DeliveryStatus.FAILED
        else:
            delivery.due = now + timedelta(seconds=PAUSES[delivery.attempts - 1])
    else:
        delivery.status, delivery.sent = DeliveryStatus.SENT, now
    delivery.save(update_fields=["answer", "parts", "status", "sent", "due"])
    return delivery.status == DeliveryStatus.SENT


def _send(delivery: Delivery, now: datetime) -> tuple[str, dict[str, Any]]:
    channel = delivery.channel
    if not channel.enabled and delivery.occasion != Occasion.TEST:
        raise UndeliverableError(SWITCHED_OFF, final=True)
    address = address_of(channel)
    message = read(delivery.message)
    if channel.kind == ChannelKind.EMAIL:
        return mail.send(message, address.recipients, delivery.key)
    make = FORMATS[channel.kind]
    post = make(message, address.url, address.secret, str(delivery.key), now.timestamp())
    status, body = http.send(post)
    if why := refusal(channel.kind, status, body):
        raise UndeliverableError(REFUSED, why=_without_secrets(why, address)[:200])
    words = in_words(body[:400])
    return TAKEN, {"words": f"{status} {_without_secrets(words, address)[:120]}".strip()}


def _storable(parts: dict[str, Any]) -> dict[str, Any]:
    """A receiver's words, without the character that Postgres refuses."""
    return {
        name: part.replace("\x00", "") if isinstance(part, str) else part
        for name, part in parts.items()
    }


def _without_secrets(words: str, address: Address) -> str:
    """A receiver that echoes what it was sent does not put it on our pages."""
    for secret in (address.url, urlsplit(address.url).path, address.secret):
        if len(secret) > 3:
            words = words.replace(secret, "…")
    return words


def address_of(channel: Channel) -> Address:
    try:
        return msgspec.convert(unseal(channel.sealed), Address)
    except SealError as error:
        raise UndeliverableError(SEALED, final=True) from error
