"""Amounts and places as people read them, in the reader's language."""

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from monitoring.scopes import launch_of

GIB = 2**30
SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def amount(value: float, unit: str) -> str:
    """`0.953` of `ratio` is 95.3 %, `3.1e9` of `bytes` is 2.9 GiB."""
    if unit == "ratio":
        return f"{_number(value * 100)} %"
    if unit == "times":
        return f"{_number(value)} ×"
    if unit == "bytes":
        large = abs(value) >= GIB / 10
        return f"{_number(value / GIB)} GiB" if large else f"{_number(value / 2**20)} MiB"
    if unit == "seconds":
        return f"{_number(value * 1000)} ms" if 0 < abs(value) < 1 else f"{_number(value)} s"
    if unit in ("hertz", "bits/s"):
        return _scaled(value, {"hertz": "Hz", "bits/s": "bit/s"}[unit])
    return f"{_number(value)} {_unit(unit)}".strip()


def place(topic: str, node: str, deployment: str) -> str:
    """A node, a device of it, a deployment or a rank, as pages name them; else the fleet."""
    subject = topic.partition("/")[2] or topic
    if subject.startswith("gpu:"):
        parts = {"index": subject.removeprefix("gpu:"), "node": node}
        return _("accelerator %(index)s · %(node)s") % parts
    if launch_of(subject) is not None and ":rank" in subject:
        parts = {"rank": subject.rpartition(":rank")[2], "place": node or deployment}
        return _("rank %(rank)s · %(place)s") % parts
    return deployment if launch_of(subject) is not None else node or _("The fleet")


def _scaled(value: float, unit: str) -> str:
    for scale, letter in SCALES:
        if abs(value) >= scale:
            return f"{_number(value / scale)} {letter}{unit}"
    return f"{_number(value)} {unit}"


def _unit(unit: str) -> str:
    return {"celsius": "°C", "watts": "W", "joules": "J", "rpm": "rpm"}.get(unit, unit)


def lasting(seconds: float) -> str:
    """45 s, 5 min, 24 h: the largest unit that gives a whole number."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size and seconds % size == 0:
            return f"{number_format(seconds // size, 0)} {unit}"
    return f"{_number(seconds)} s"


def _number(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    while digits and round(value, digits) == round(value, digits - 1):
        digits -= 1
    return number_format(round(value, digits) if digits else round(value), digits)
