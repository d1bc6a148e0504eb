"""How the numbers of a metric are summed up over time, one letter each. No Django."""

from collections.abc import Iterable

from monitoring.metrics import METRICS, NOISE
from monitoring.packing import Field

GAUGE = "g"
COUNTER = "c"
BUCKET = "b"
LEVEL = "l"
"""Sound: 10·log10 of the mean of 10^(L/10), never the mean of the decibels."""
LOWEST = "n"
"""The lowest of several subjects: over time the lowest again."""
HIGHEST = "x"

_BY_SHAPE = {"gauge": GAUGE, "counter": COUNTER, "bucket": BUCKET}
_BY_ENDING = {"_total": COUNTER, "_sum": COUNTER, "_bucket": BUCKET}
"""For what a newer agent tells of that this panel does not know yet."""
_OF_GROUP = {"low": LOWEST, "high": HIGHEST}


def shapes_of(subject: str, fields: Iterable[Field]) -> str:
    """In the order of the fields."""
    group = subject.startswith("group:")
    return "".join(_shape(field[0], field[6] if group else "") for field in fields)


def _shape(name: str, group_label: str) -> str:
    if group_label in _OF_GROUP:
        return _OF_GROUP[group_label]
    if name == NOISE.name:
        return LEVEL
    if name in METRICS:
        return _BY_SHAPE[METRICS[name].shape]
    return next((letter for end, letter in _BY_ENDING.items() if name.endswith(end)), GAUGE)
