"""Which layouts hold the series that are asked for, and where in them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from monitoring.models import Layout, Progress
from monitoring.packing import Field
from monitoring.scopes import Subject, topic_of

SEEN_SLACK = timedelta(hours=1)

SeriesId = tuple[str, str, str]
"""metric, scope, label"""


@dataclass(frozen=True)
class Place:
    """One number of a layout that is wanted; `index` counts from 0."""

    index: int
    shape: str
    field: Field

    @property
    def series(self) -> SeriesId:
        return self.field[0], self.field[4], self.field[6]


@dataclass(frozen=True)
class Track:
    """One layout of a subject that is asked for."""

    layout: int
    topic: str
    places: tuple[Place, ...]

    @property
    def asked(self) -> tuple[tuple[int, str], ...]:
        """Layouts that agree in it are read by one query."""
        return tuple((place.index, place.shape) for place in self.places)


def tracks(
    subjects: Sequence[Subject], metrics: Collection[str], since: datetime
) -> dict[int, Track]:
    """By layout, those that may have readings from `since` on and hold any of the metrics."""
    found = {}
    for layout in layouts(subjects, since):
        places = tuple(
            Place(index, layout.shapes[index], tuple(field))
            for index, field in enumerate(layout.fields)
            if field[0] in metrics
        )
        if places:
            topic = topic_of(layout.node_id, layout.subject)
            found[layout.pk] = Track(layout.pk, topic, places)
    return found


def layouts(subjects: Sequence[Subject], since: datetime) -> Iterator[Layout]:
    """Of these subjects, those that may have readings from `since` on."""
    topics = {subject.topic for subject in subjects}
    own = [subject for subject in subjects if subject.node is not None]
    asked = Q(node__in={s.node for s in own}, subject__in={s.subject for s in own})
    asked |= Q(subject__in={s.subject for s in subjects if s.node is None})
    trusted = Progress.objects.filter(level="minute").values_list("until", flat=True).first()
    recent = Q(seen=None)
    if trusted is not None:
        recent |= Q(seen__gte=min(since, trusted) - SEEN_SLACK)
    described = Layout.objects.filter(recent, asked)
    for layout in described.only("node_id", "subject", "fields", "shapes"):
        if topic_of(layout.node_id, layout.subject) in topics:
            yield layout


def alike(found: Iterable[Track]) -> dict[tuple[tuple[int, str], ...], list[int]]:
    """Layouts by what is asked of them."""
    groups: dict[tuple[tuple[int, str], ...], list[int]] = {}
    for track in found:
        groups.setdefault(track.asked, []).append(track.layout)
    return groups
