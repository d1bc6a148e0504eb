"""Sources outside the machine: how one is read, and what is absent while it cannot be."""

from typing import Protocol

from monitoring.metrics import (
    ENERGY,
    FAN_SPEED,
    INLET_TEMPERATURE,
    MICROPHONE_LEVEL,
    NOISE,
    NOISE_BAND,
    POWER,
    SOURCE_AGE,
    TEMPERATURE,
    Metric,
)
from monitoring.samples import Sample, Scope, unavailable
from monitoring.sources import (
    DeclaredNoise,
    DeclaredPower,
    FanLawSource,
    MeterSource,
    MicrophoneSource,
    PduSource,
    RedfishSource,
    Source,
)


class SourceError(Exception):
    """A source cannot be read; `reason` is a sentence for a person, marked for translation."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait = wait
        """Seconds to leave it alone, at least: accounts are locked after too many wrong tries."""


class Reader(Protocol):
    """One source, kept open between readings. All calls come from one thread of its own."""

    period: float
    """Seconds from one reading to the next."""

    def read(self) -> list[Sample]:
        """May block, with deadlines of its own. Raises SourceError."""

    def close(self) -> None:
        """End sessions, let devices go."""


def scope_of(source: Source) -> Scope:
    match source:
        case PduSource():
            return "wall"
        case RedfishSource() | DeclaredPower():
            return "host"
        case _:
            return "room"


def absent(source: Source, reason: str) -> list[Sample]:
    """Everything the source is asked for, with the reason why it has none of it."""
    scope = scope_of(source)
    return [
        unavailable(metric, reason, source=source.origin, scope=scope, label=label)
        for metric, label in _asked(source)
    ]


def age_of(source: Source, seconds: float | None, reason: str = "") -> Sample:
    """How old its newest reading is, or why there is none that counts."""
    return Sample(
        SOURCE_AGE.name,
        seconds,
        SOURCE_AGE.unit,
        source.origin,
        "unavailable" if seconds is None else "measured",
        scope_of(source),
        reason=reason if seconds is None else "",
        label=source.name,
    )


def _asked(source: Source) -> list[tuple[Metric, str]]:
    match source:
        case RedfishSource():
            metrics = (POWER, ENERGY, INLET_TEMPERATURE, FAN_SPEED, TEMPERATURE)
            return [(metric, "") for metric in metrics]
        case PduSource() | DeclaredPower():
            return [(POWER, ""), (ENERGY, "")]
        case MicrophoneSource():
            noise = [(NOISE, source.position), (NOISE_BAND, source.position)]
            return [*noise, (MICROPHONE_LEVEL, source.name)]
        case MeterSource() | FanLawSource() | DeclaredNoise():
            return [(NOISE, source.position), (NOISE_BAND, source.position)]
