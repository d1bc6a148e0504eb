"""A telemetry frame, checked: what an agent sent becomes rows that can be stored and shown."""

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
from django.utils.translation import gettext_noop

from monitoring.samples import CLOCK_SKEW, Sample

MAX_SAMPLES = 4096
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
MAX_AHEAD = timedelta(days=1)
SIGNED_METRICS = frozenset({"temperature_celsius", CLOCK_SKEW.name})

NOT_FINITE = gettext_noop("The source gave a number that is not finite.")
NEGATIVE = gettext_noop("The source gave a negative number, which this cannot be.")
NO_REASON = gettext_noop("The source gave no reason.")

_METRIC = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SUBJECT = re.compile(r"[a-z][a-z0-9]*(:[A-Za-z0-9_.-]+){0,3}")
_MAX_SUBJECT = 80

Field = tuple[str, str, str, str, str, str]
"""metric, unit, source, kind, scope, reason"""


@dataclass(frozen=True)
class SubjectReading:
    """Everything a frame says about one subject; `numbers` stand in the order of `fields`."""

    subject: str
    fields: tuple[Field, ...]
    numbers: tuple[float | None, ...]

    @property
    def digest(self) -> str:
        return hashlib.blake2b(msgspec.msgpack.encode(self.fields), digest_size=16).hexdigest()

    def values(self) -> dict[str, float | None]:
        return {name[0]: number for name, number in zip(self.fields, self.numbers, strict=True)}

    def absent(self) -> dict[str, str]:
        return {name[0]: name[5] for name in self.fields if name[3] == "unavailable"}


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


def check_frame(
    node: int, seq: int, at: float, samples: Sequence[Sample], arrived: datetime
) -> Frame:
    """A storable frame, or one without readings that says in `refused` why it is not."""
    moment = _moment(at, arrived)
    if isinstance(moment, str):
        return Frame(node, seq, arrived, [], [moment])
    refused = []
    if len(samples) > MAX_SAMPLES:
        refused.append(f"{len(samples)} samples in one frame; the first {MAX_SAMPLES} were kept.")
    skew = (arrived - moment).total_seconds()
    by_subject: dict[str, list[Sample]] = {}
    for sample in [*samples[:MAX_SAMPLES], _skew_sample(skew)]:
        if fault := _name_fault(sample):
            refused.append(fault)
        else:
            by_subject.setdefault(sample.subject, []).append(_honest(sample))
    readings = [_reading(subject, group) for subject, group in by_subject.items()]
    return Frame(node, seq, moment, readings, refused)


def _moment(at: float, arrived: datetime) -> datetime | str:
    """The node's time, to the microsecond; a sentence when it cannot be one."""
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return f"The frame's time, {at}, is no time."
    if not EARLIEST <= moment <= arrived + MAX_AHEAD:
        return f"The frame's time, {moment:%Y-%m-%d %H:%M:%S} UTC, is out of the question."
    return moment


def _skew_sample(skew: float) -> Sample:
    return Sample(
        CLOCK_SKEW.name,
        skew,
        CLOCK_SKEW.unit,
        source="panel: arrival",
        kind="derived",
        scope="host",
    )


def _name_fault(sample: Sample) -> str:
    if not _METRIC.fullmatch(sample.metric):
        return f"{sample.metric[:80]!r} is no metric name."
    if len(sample.subject) > _MAX_SUBJECT or not _SUBJECT.fullmatch(sample.subject):
        return f"{sample.subject[:80]!r} is no subject."
    return ""


def _honest(sample: Sample) -> Sample:
    """The sample itself, or its absence when the value is none a reader could use."""
    if sample.value is None or sample.kind == "unavailable":
        reason = sample.reason or NO_REASON
    elif not math.isfinite(sample.value):
        reason = NOT_FINITE
    elif sample.value < 0 and sample.metric not in SIGNED_METRICS:
        reason = NEGATIVE
    else:
        return sample
    return msgspec.structs.replace(sample, value=None, kind="unavailable", reason=reason[:300])


def _reading(subject: str, samples: list[Sample]) -> SubjectReading:
    fields = tuple(
        (s.metric, s.unit[:20], s.source[:80], s.kind, s.scope, s.reason) for s in samples
    )
    return SubjectReading(subject, fields, tuple(s.value for s in samples))
