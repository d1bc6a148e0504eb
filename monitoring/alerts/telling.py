"""Who is told what, and when: messages are planned here and carried out elsewhere."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Q

from monitoring.alerts.grouping import REOPENS
from monitoring.alerts.notify.message import compose
from monitoring.alerts.world import World
from monitoring.models import Alert, AlertStatus, Channel, Delivery, Incident, Occasion, Severity

GATHER = timedelta(seconds=4)
"""So that what a dying box takes with it comes in one message."""
REMEMBERED = timedelta(days=1)
"""How long after its end an incident may still be told to be over."""

FLAPPING = 2
"""After so many returns the end of an incident is told only once it lasts."""

Told = dict[tuple[int, int], list[Delivery]]
"""(channel, incident) -> what was said, the oldest first."""


def plan(world: World) -> None:
    """One message at most for each channel and incident, however long nobody was there to plan."""
    channels = list(Channel.objects.filter(enabled=True))
    incidents = list(_current(world.now)) if channels else []
    if not incidents:
        return
    told = _told(channels, incidents)
    loud = _loud(incidents)
    due = [
        _delivery(channel, incident, occasion, number, world.now)
        for incident in incidents
        for channel in channels
        for occasion, number in _due(
            channel, incident, told[channel.pk, incident.pk], loud.get(incident.pk), world.now
        )
    ]
    Delivery.objects.bulk_create(due, ignore_conflicts=True)


def _current(now: datetime) -> Iterable[Incident]:
    return Incident.objects.filter(Q(closed=None) | Q(closed__gt=now - REMEMBERED))


def _told(channels: list[Channel], incidents: list[Incident]) -> Told:
    found: Told = defaultdict(list)
    said = Delivery.objects.filter(channel__in=channels, incident__in=incidents)
    for delivery in said.order_by("created", "pk"):
        assert delivery.incident_id is not None
        found[delivery.channel_id, delivery.incident_id].append(delivery)
    return found


class Loud(NamedTuple):
    """What fires of an incident, and nobody silenced."""

    since: datetime
    rank: int
    """Of the gravest."""


def _loud(incidents: list[Incident]) -> dict[int, Loud]:
    firing = Alert.objects.filter(incident__in=incidents, status=AlertStatus.FIRING, hushed=False)
    found: dict[int, Loud] = {}
    for pk, fired, severity in firing.values_list("incident", "fired", "severity"):
        assert fired is not None
        rank = Severity(severity).rank
        one = found.get(pk, Loud(fired, rank))
        found[pk] = Loud(min(one.since, fired), max(one.rank, rank))
    return found


def _due(
    channel: Channel,
    incident: Incident,
    said: list[Delivery],
    loud: Loud | None,
    now: datetime,
) -> Iterator[tuple[Occasion, int]]:
    known = _known(incident, said)
    if incident.closed:
        over = _said(said, Occasion.RESOLVED, incident.reopened)
        if known and channel.resolved and not over and _lasts(incident, now):
            yield Occasion.RESOLVED, incident.reopened
        return
    if loud is None or loud.rank < Severity(channel.least).rank:
        return
    if not known:
        since = loud.since if incident.reopened else incident.opened
        if _its_turn(channel, incident, now - since):
            yield Occasion.OPENED, incident.reopened
    elif loud.rank > max(_gravity(one) for one in said):
        yield Occasion.WORSE, _count(said, Occasion.WORSE)
    elif _repeats(channel, incident, said[-1], now):
        yield Occasion.STILL, _count(said, Occasion.STILL)


def _known(incident: Incident, said: list[Delivery]) -> bool:
    """Whether the channel has heard of it; of one that comes and goes, once until its end."""
    if incident.reopened < FLAPPING:
        return _said(said, Occasion.OPENED, incident.reopened)
    ends = [one.occasion for one in said if one.occasion in (Occasion.OPENED, Occasion.RESOLVED)]
    return ends[-1:] == [Occasion.OPENED]


def _lasts(incident: Incident, now: datetime) -> bool:
    """Whether its end may be told: what keeps coming back may do so again."""
    assert incident.closed is not None
    return incident.reopened < FLAPPING or now - incident.closed >= REOPENS


def _its_turn(channel: Channel, incident: Incident, age: timedelta) -> bool:
    if channel.after_minutes == 0:
        return age >= GATHER
    return incident.acknowledged is None and age >= timedelta(minutes=channel.after_minutes)


def _repeats(channel: Channel, incident: Incident, last: Delivery, now: datetime) -> bool:
    if not channel.repeat_minutes or incident.acknowledged is not None:
        return False
    return now - last.created >= timedelta(minutes=channel.repeat_minutes)


def _said(said: list[Delivery], occasion: Occasion, number: int) -> bool:
    return any(one.occasion == occasion and one.number == number for one in said)


def _count(said: list[Delivery], occasion: Occasion) -> int:
    return sum(one.occasion == occasion for one in said)


def _gravity(delivery: Delivery) -> int:
    return Severity(delivery.message["severity"]).rank


def _delivery(
    channel: Channel, incident: Incident, occasion: Occasion, number: int, now: datetime
) -> Delivery:
    message = compose(incident, occasion, channel.language, now)
    return Delivery(
        channel=channel,
        incident=incident,
        occasion=occasion,
        number=number,
        message=message,
        due=now,
        created=now,
    )
