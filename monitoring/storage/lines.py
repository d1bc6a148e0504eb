"""Series put together from several levels and layouts, with a break wherever nothing was read."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from math import log10

from monitoring.models import Progress
from monitoring.packing import Field
from monitoring.storage import binned
from monitoring.storage.binned import LOUDEST, SOFTEST, Cell, Stretch
from monitoring.storage.levels import HOUR, MINUTE, SECOND, Level
from monitoring.storage.shapes import BUCKET, HIGHEST, LEVEL, LOWEST
from monitoring.storage.tracks import Place, SeriesId, Track, alike

GAP_INTERVALS = 2.5
"""Readings further apart than this are not joined by a line."""
GAP_BINS = 1.5

Number = float | None
Columns = tuple[list[float], list[Number], list[Number], list[Number]]
ABSENT: Cell = (0, None, None, None)


@dataclass
class Line:
    """One series, told as of its end."""

    told: Field
    shape: str
    newest: float
    cells: dict[float, Cell] = field(default_factory=dict)

    def add(self, at: float, cell: Cell) -> None:
        before = self.cells.get(at)
        self.cells[at] = cell if before is None else merged(self.shape, before, cell)

    def columns(self, moments: list[float]) -> Columns:
        """Times, values, lows and highs; the times are shared."""
        cells = [self.cells.get(at, ABSENT) for at in moments]
        return (
            moments,
            [value for _n, _low, value, _high in cells],
            [low for _n, low, _value, _high in cells],
            [high for _n, _low, _value, high in cells],
        )


def stretches(level: Level, since: datetime, until: datetime, now: datetime) -> list[Stretch]:
    """The time at `level` as far as it is rolled up, and the rest at the finer ones."""
    done = {p.level: p.until for p in Progress.objects.all()}
    found = []
    start = level.floor(since)
    for each in (HOUR, MINUTE):
        if each.seconds > level.seconds or each.name not in done:
            continue
        end = min(until, done[each.name])
        if start < end:
            found.append(Stretch(each, start, end))
            start = end
    start = max(start, since if level is SECOND else start, now - SECOND.keep)
    return [*found, Stretch(SECOND, start, until)]


def lines(
    tracks: Mapping[int, Track], parts: Sequence[Stretch], width: int
) -> Iterator[tuple[str, Field, Columns]]:
    """Topic, series and its columns; those of a topic share their times."""
    topics: dict[str, dict[SeriesId, Line]] = {track.topic: {} for track in tracks.values()}
    times: dict[str, set[float]] = {topic: set() for topic in topics}
    for asked, layouts in alike(tracks.values()).items():
        for part in parts:
            for layout, at, first, cells in binned.rows(part, layouts, asked, width):
                track = tracks[layout]
                times[track.topic].add(at)
                _place(topics[track.topic], track.places[first:], at, cells)
    for topic, known in topics.items():
        moments = with_breaks(sorted(times[topic]), width)
        for line in known.values():
            yield topic, line.told, line.columns(moments)


def _place(
    known: dict[SeriesId, Line], places: Sequence[Place], at: float, cells: Sequence[Cell]
) -> None:
    for place, cell in zip(places, cells, strict=False):
        line = known.get(place.series)
        if line is None:
            line = known[place.series] = Line(place.field, place.shape, at)
        elif at >= line.newest:
            line.newest, line.told = at, place.field
        line.add(at, cell)


def with_breaks(moments: list[float], width: int) -> list[float]:
    """A moment more, at which nothing was read, in each hole."""
    usual = float(width)
    if width == 1 and len(moments) > 1:
        steps = sorted(after - before for before, after in pairwise(moments))
        usual = max(1.0, steps[len(steps) // 2])
    most = usual * (GAP_INTERVALS if width == 1 else GAP_BINS)
    broken = moments[:1]
    for before, after in pairwise(moments):
        if after - before > most:
            broken.append(before + usual)
        broken.append(after)
    return broken


def merged(shape: str, one: Cell, other: Cell) -> Cell:
    """Two parts of one bin, read from two levels or two layouts."""
    if not one[0] or not other[0]:
        return one if one[0] else other
    n = one[0] + other[0]
    low = _known(min, one[1], other[1])
    high = _known(max, one[3], other[3])
    if shape in (BUCKET, HIGHEST):
        value = _known(max, one[2], other[2])
    elif shape == LOWEST:
        value = _known(min, one[2], other[2])
    else:
        value = _mean(shape, one, other)
    return n, low, value, high


def _mean(shape: str, one: Cell, other: Cell) -> Number:
    if one[2] is None or other[2] is None:
        return one[2] if other[2] is None else other[2]
    n = one[0] + other[0]
    if shape != LEVEL:
        return (one[0] * one[2] + other[0] * other[2]) / n
    return 10 * log10((one[0] * _energy(one[2]) + other[0] * _energy(other[2])) / n)


def _energy(level: float) -> float:
    return float(10 ** (min(max(level, SOFTEST), LOUDEST) / 10))


def _known(choose: Callable[[Iterable[float]], float], *numbers: Number) -> Number:
    known = [number for number in numbers if number is not None]
    return choose(known) if known else None
