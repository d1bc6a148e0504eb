"""What a node's sources tell now: values with their kind, or the reason why there is none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.choices import NodeStatus
from dashboard.models import Node
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
)
from monitoring.models import NodeSource
from monitoring.packing import Field
from monitoring.scopes import Subject
from monitoring.storage import series
from monitoring.vault import SealError

RECENT = timedelta(seconds=15)
"""Older readings say nothing of now."""
JOULES_PER_KWH = 3.6e6

KIND_NAMES = {
    "measured": gettext_lazy("measured"),
    "calibrated": gettext_lazy("calibrated"),
    "estimated": gettext_lazy("estimated"),
    "derived": gettext_lazy("derived"),
    "declared": gettext_lazy("declared"),
}
NAMES = {
    NOISE.name: gettext_lazy("Noise"),
    POWER.name: gettext_lazy("Power"),
    ENERGY.name: gettext_lazy("Energy counted"),
    INLET_TEMPERATURE.name: gettext_lazy("Air intake"),
    FAN_SPEED.name: gettext_lazy("Fastest fan"),
    TEMPERATURE.name: gettext_lazy("Hottest sensor"),
    MICROPHONE_LEVEL.name: gettext_lazy("Before calibration"),
}


@dataclass(frozen=True)
class Value:
    """One line of a source: `text` is empty where `reason` says why."""

    name: str
    text: str
    kind: str
    reason: str


@dataclass
class SourceState:
    """`status`: `ready`, `failed`, or `waiting` while nothing has been heard of it."""

    row: NodeSource
    status: str
    label: str
    reason: str = ""
    age: float | None = None
    values: list[Value] = field(default_factory=list)


Read = tuple[Field, float | None]


def newest(node: Node) -> list[Read]:
    """What the node told within the last seconds about itself."""
    subject = Subject("node", node.name, node.pk, node.name)
    found = series.latest([subject], RECENT).get(subject.topic)
    return list(zip(found.fields, found.numbers, strict=True)) if found else []


def states(node: Node) -> list[SourceState]:
    """One of each source, in the order in which they were added."""
    read = newest(node)
    return [_state(node, row, read) for row in node.sources.all()]


def _state(node: Node, row: NodeSource, read: Sequence[Read]) -> SourceState:
    try:
        origin = row.source.origin
    except SealError:
        return _failed(
            row, _("Its secret was stored with another key of the panel; enter it again.")
        )
    if node.status != NodeStatus.ONLINE:
        return _waiting(row, _("The node's agent is not connected."))
    own = [one for one in read if one[0][2] == origin]
    if row.kind.startswith("declared"):
        return _declared(row, own, bool(read))
    age = next(((f, v) for f, v in own if f[0] == SOURCE_AGE.name), None)
    if age is None:
        return _waiting(row, _("Its first reading is on its way."))
    described, seconds = age
    if seconds is None:
        return _failed(row, _(described[5]))
    values = list(_values(own))
    reason = "" if values else _("A better source gives these readings.")
    return SourceState(row, "ready", _("Reading"), reason, seconds, values)


def _declared(row: NodeSource, own: Sequence[Read], heard: bool) -> SourceState:
    values = [value for value in _values(own) if value.text]
    if values:
        return SourceState(row, "ready", _("In use"), values=values)
    if heard:
        return SourceState(row, "stopped", _("Not needed"), _("Something better is read instead."))
    return _waiting(row, _("Its first reading is on its way."))


def _failed(row: NodeSource, reason: str) -> SourceState:
    return SourceState(row, "failed", _("No reading"), reason)


def _waiting(row: NodeSource, reason: str) -> SourceState:
    return SourceState(row, "waiting", _("Waiting"), reason)


def _values(own: Sequence[Read]) -> Iterator[Value]:
    """The lines worth showing, in the order of `NAMES`; single fans and sensors are on charts."""
    bands = {f[6]: v for f, v in own if f[0] == NOISE_BAND.name}
    for metric, name in NAMES.items():
        for described, number in own:
            labelled = metric in (FAN_SPEED.name, TEMPERATURE.name) and described[6]
            if described[0] != metric or labelled:
                continue
            text = "" if number is None else _text(metric, number, bands.get(described[6]))
            text = f"≈ {text}" if text and described[3] == "estimated" else text
            kind = str(KIND_NAMES.get(described[3], ""))
            yield Value(str(name), text, kind, _(described[5]) if number is None else "")


def _text(metric: str, number: float, band: float | None) -> str:
    match metric:
        case NOISE.name:
            level = f"{number_format(round(number, 1), 1)} dB(A)"
            return level if band is None else f"{level} ± {number_format(round(band, 1), 1)}"
        case POWER.name:
            return f"{number_format(round(number, 1), 1)} W"
        case ENERGY.name:
            return f"{number_format(round(number / JOULES_PER_KWH, 3), 3)} kWh"
        case FAN_SPEED.name:
            return _("%(speed)s rpm") % {"speed": number_format(round(number))}
        case MICROPHONE_LEVEL.name:
            return f"{number_format(round(number, 1), 1)} dBFS"
    return f"{number_format(round(number, 1), 1)} °C"
