"""A telemetry frame, checked: what an agent sent becomes rows that can be stored and shown."""

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import get_args

import msgspec
from django.utils.translation import gettext_noop

from monitoring.charts.histograms import bound
from monitoring.metrics import METRICS
from monitoring.packing import Field, Layout, Numbers
from monitoring.samples import Kind

MOST_READINGS = 1024
MOST_FIELDS = 1024
MOST_LAYOUTS = 16_384
"""Of one connection; more are forgotten, those told longest ago first."""
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
MAX_AHEAD = timedelta(minutes=5)

LARGEST = 1e100
"""Beyond it no sum of numbers is safe, and no quantity lies there."""
TOO_LARGE = gettext_noop("The source gave a number that is too large to be meant.")
NOT_FINITE = gettext_noop("The source gave a number that is not finite.")
NEGATIVE = gettext_noop("The source gave a negative number, which this cannot be.")
NO_REASON = gettext_noop("The source gave no reason.")

_METRIC = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SUBJECT = re.compile(r"[a-z][a-z0-9]*(:[A-Za-z0-9_.-]+){0,3}")
_MOST_SUBJECT = 80
_OURS = "group:"
"""Subjects that only the panel tells of: what sums up its fleet."""
_KINDS = frozenset(get_args(Kind))
_BOUNDS = (20, 80, 20, 300, 60)
"""Characters of a unit, a source, a scope, a reason and a label."""


@dataclass(frozen=True)
class CheckedLayout:
    """A layout whose names can be stored; a reading of it costs a look at its numbers."""

    subject: str
    fields: tuple[Field, ...]
    places: tuple[int, ...]
    """Where in the agent's numbers each field stands; what was malformed has no place."""
    refused: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        return hashlib.blake2b(msgspec.msgpack.encode(self.fields), digest_size=16).hexdigest()

    @cached_property
    def signed(self) -> tuple[bool, ...]:
        return tuple(name in METRICS and METRICS[name].signed for name, *_rest in self.fields)

    @cached_property
    def absent(self) -> tuple[bool, ...]:
        return tuple(described[3] == "unavailable" for described in self.fields)

    @cached_property
    def whole(self) -> bool:
        return self.places == tuple(range(len(self.places)))

    @cached_property
    def least(self) -> int:
        """How many numbers a reading has at least."""
        return max(self.places, default=-1) + 1

    @cached_property
    def present(self) -> tuple[int, ...]:
        return tuple(place for place, absent in enumerate(self.absent) if not absent)

    @cached_property
    def _holes(self) -> tuple[int, ...]:
        return tuple(place for place, absent in enumerate(self.absent) if absent)

    @cached_property
    def _unsigned(self) -> tuple[int, ...]:
        return tuple(place for place in self.present if not self.signed[place])

    @cached_property
    def shown(self) -> tuple[int, ...] | None:
        """The places of what is shown live: all (None) but the bars of histograms."""
        shown = tuple(
            place
            for place, (metric, *_rest) in enumerate(self.fields)
            if metric not in METRICS or METRICS[metric].shape != "bucket"
        )
        return None if len(shown) == len(self.fields) else shown

    @cached_property
    def _firsts(self) -> dict[str, int]:
        """Metric -> where it stands: without a label, else the first of those with one."""
        order = sorted(range(len(self.fields)), key=lambda place: bool(self.fields[place][6]))
        return {self.fields[place][0]: place for place in reversed(order)}

    def place(self, metric: str) -> int | None:
        return self._firsts.get(metric)

    def sound(self, numbers: Numbers) -> bool:
        """Whether they are all as told: a quick look that spares the close one."""
        known = [number for place in self.present if (number := numbers[place]) is not None]
        if len(known) != len(self.present) or not math.isfinite(sum(known)):
            return False
        if any(numbers[place] is not None for place in self._holes):
            return False
        least = min(known, default=0.0)
        if least < -LARGEST or max(known, default=0.0) > LARGEST:
            return False
        return least >= 0.0 or all((numbers[place] or 0.0) >= 0.0 for place in self._unsigned)


@dataclass(frozen=True)
class SubjectReading:
    """Everything a frame says about one subject; `numbers` stand in the order of its fields."""

    layout: CheckedLayout
    numbers: Numbers

    @property
    def subject(self) -> str:
        return self.layout.subject

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.layout.fields


@dataclass
class Frame:
    node: int
    seq: int
    at: datetime
    readings: list[SubjectReading]
    refused: list[str] = field(default_factory=list)
    """What was wrong with the frame, one sentence each; for the log."""
    stored: int | None = None
    """Rows written: 0 for one that was there already, None while it is not written yet."""

    @property
    def weight(self) -> int:
        """How many numbers it holds."""
        return sum(len(reading.numbers) for reading in self.readings)


class Layouts:
    """What one connection has told of its layouts."""

    def __init__(self) -> None:
        self._known: dict[int, CheckedLayout] = {}

    def learn(self, layouts: Iterable[Layout]) -> list[str]:
        """Remember them; what was wrong with their names, one sentence each."""
        refused: list[str] = []
        for layout in layouts:
            checked = check_layout(layout)
            self._known.pop(layout.number, None)
            self._known[layout.number] = checked
            if len(self._known) > MOST_LAYOUTS:
                del self._known[next(iter(self._known))]
            refused += checked.refused
        return refused

    def frame(
        self,
        node: int,
        seq: int,
        at: float,
        readings: Sequence[tuple[int, Numbers]],
        arrived: datetime,
    ) -> Frame:
        """A storable frame, or one without readings that says in `refused` why it is not."""
        moment = _moment(at, arrived)
        if isinstance(moment, str):
            return Frame(node, seq, arrived, [], [moment])
        frame = Frame(node, seq, moment, [])
        if len(readings) > MOST_READINGS:
            frame.refused.append(
                f"{len(readings)} subjects in one frame; the first {MOST_READINGS} were kept."
            )
        told: set[str] = set()
        for number, numbers in readings[:MOST_READINGS]:
            layout = self._known.get(number)
            if layout is None or len(numbers) < layout.least:
                frame.refused.append(f"Reading {number} does not fit what was told of it.")
            elif layout.subject in told:
                frame.refused.append(f"{layout.subject} is read twice in one frame.")
            elif layout.fields:
                told.add(layout.subject)
                frame.readings.append(_reading(layout, numbers))
        return frame


def check_layout(layout: Layout) -> CheckedLayout:
    """What of it can be stored: names in form, texts in bounds, no series twice."""
    known = _SUBJECT.fullmatch(layout.subject) and not layout.subject.startswith(_OURS)
    if len(layout.subject) > _MOST_SUBJECT or not known:
        fault = f"{layout.subject[:80]!r} is no subject."
        return CheckedLayout("", (), (), (fault,))
    fields, places, refused = [], [], []
    seen: set[tuple[str, str, str]] = set()
    for place, told in enumerate(layout.fields[:MOST_FIELDS]):
        field = _storable(told)
        series = field[0], field[4], field[6]
        if fault := _fault_of(field):
            refused.append(fault)
        elif series in seen:
            refused.append(f"{field[0]} of {layout.subject} is told twice.")
        else:
            seen.add(series)
            fields.append(field)
            places.append(place)
    return CheckedLayout(layout.subject, tuple(fields), tuple(places), tuple(refused))


def _storable(told: Field) -> Field:
    """Its texts in bounds, without the character that Postgres refuses."""
    metric, unit, source, kind, scope, reason, label = told
    reason = (reason or NO_REASON) if kind == "unavailable" else ""
    texts = (unit, source, scope, reason, label)
    unit, source, scope, reason, label = (
        text.replace("\x00", "")[:most] for text, most in zip(texts, _BOUNDS, strict=True)
    )
    return metric, unit, source, kind, scope, reason, label


def _fault_of(field: Field) -> str:
    """Why it cannot be kept; empty when it can."""
    metric, kind, label = field[0], field[3], field[6]
    if not _METRIC.fullmatch(metric):
        return f"{metric[:80]!r} is no metric name."
    if kind not in _KINDS:
        return f"{kind[:20]!r} of {metric} is no kind of reading."
    if metric.endswith("_bucket") and kind != "unavailable" and bound(label) is None:
        return f"{label!r} of {metric} is no bound of a histogram."
    return ""


def _reading(layout: CheckedLayout, told: Numbers) -> SubjectReading:
    numbers = told[: len(layout.places)] if layout.whole else tuple(told[i] for i in layout.places)
    if layout.sound(numbers):
        return SubjectReading(layout, numbers)
    reasons = {
        place: reason
        for place, number in enumerate(numbers)
        if (reason := _fault(number, layout.absent[place], layout.signed[place]))
    }
    return _without(layout, numbers, reasons) if reasons else SubjectReading(layout, numbers)


def _fault(number: float | None, absent: bool, signed: bool) -> str:
    """Why a number is none that a reader could use; empty when it is one, or honestly absent."""
    if number is None:
        return "" if absent else NO_REASON
    if absent:
        return NO_REASON
    if not math.isfinite(number):
        return NOT_FINITE
    if abs(number) > LARGEST:
        return TOO_LARGE
    return NEGATIVE if number < 0 and not signed else ""


def _without(layout: CheckedLayout, numbers: Numbers, reasons: dict[int, str]) -> SubjectReading:
    fields = list(layout.fields)
    for place, reason in reasons.items():
        metric, unit, source, kind, scope, told, label = fields[place]
        reason = told if kind == "unavailable" and told else reason
        fields[place] = (metric, unit, source, "unavailable", scope, reason, label)
    honest = CheckedLayout(layout.subject, tuple(fields), tuple(range(len(fields))))
    kept = tuple(None if place in reasons else number for place, number in enumerate(numbers))
    return SubjectReading(honest, kept)


def _moment(at: float, arrived: datetime) -> datetime | str:
    """The reading's time, to the microsecond; a sentence when it cannot be one."""
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return f"The frame's time, {at}, is no time."
    if not EARLIEST <= moment <= arrived + MAX_AHEAD:
        return f"The frame's time, {moment:%Y-%m-%d %H:%M:%S} UTC, is out of the question."
    return moment
