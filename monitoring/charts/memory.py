"""What a box's memory holds, part by part. Pure: from its newest readings, without a database.

A part that nobody can tell is there with its reason, so the bar shows what is not known instead of
giving it to a neighbour.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from monitoring.samples import Kind, gettext_noop

PartName = Literal["weights", "kv", "runtime", "undivided", "other", "page_cache", "free", "floor"]

UNTOLD = gettext_noop("No reading has arrived for some seconds.")
NOT_TOLD_APART = gettext_noop("It cannot be told from the rest while a part is not known.")
NOT_TOUCHED = gettext_noop("The engines have room that they have not touched yet.")
NO_CACHE_READING = gettext_noop("The page cache is not read here, so it counts as free.")


@dataclass(frozen=True)
class Amount:
    """Bytes and how they came about; None with a reason."""

    bytes: float | None
    kind: Kind = "measured"
    source: str = ""
    reason: str = ""

    @property
    def known(self) -> bool:
        return self.bytes is not None


def unknown(reason: str) -> Amount:
    return Amount(None, "unavailable", "", reason)


UNKNOWN = unknown(UNTOLD)


@dataclass(frozen=True)
class Held:
    """What one rank holds, and what its process takes in all."""

    weights: Amount = UNKNOWN
    kv: Amount = UNKNOWN
    process: Amount = UNKNOWN


@dataclass(frozen=True)
class Part:
    name: PartName
    amount: Amount
    share: float = 0.0
    """Of the whole, 0..1; what is not known takes no room."""


@dataclass(frozen=True)
class Bar:
    total: Amount
    parts: list[Part] = field(default_factory=list)

    @property
    def unknown(self) -> list[Part]:
        return [part for part in self.parts if not part.amount.known]


@dataclass(frozen=True)
class Host:
    """A node's main memory. `available` is what a new process could have without swapping."""

    total: Amount = UNKNOWN
    available: Amount = UNKNOWN
    page_cache: Amount = UNKNOWN
    floor: Amount = UNKNOWN


@dataclass(frozen=True)
class Device:
    """One accelerator with memory of its own."""

    total: Amount = UNKNOWN
    used: Amount = UNKNOWN


def host_bar(host: Host, ranks: Sequence[Held]) -> Bar:
    """Main memory, or the one memory of a box that shares it with its accelerator."""
    if not (host.total.known and host.available.known):
        known = [Part("other", host.available), *_held(ranks)]
        return _bar(host.total, [part for part in known if not part.amount.known])
    available = min(_number(host.available), _number(host.total))
    used = _number(host.total) - available
    kind = _widest(host.total, host.available)
    parts = [*_split(used, kind, ranks), *_reclaimable(host, available)]
    return _bar(host.total, parts)


def device_bar(devices: Sequence[Device], ranks: Sequence[Held]) -> Bar:
    """The accelerators of a box that have memory of their own, taken together."""
    total, used = _sum([d.total for d in devices]), _sum([d.used for d in devices])
    if not (total.known and used.known):
        known = [Part("other", used), *_held(ranks)]
        return _bar(total, [part for part in known if not part.amount.known])
    taken = min(_number(used), _number(total))
    parts = _split(taken, _widest(total, used), ranks)
    free = Amount(_number(total) - taken, "derived", total.source)
    return _bar(total, [*parts, Part("free", free)])


def _split(used: float, kind: Kind, ranks: Sequence[Held]) -> list[Part]:
    """What is in use: the engines' parts, and the rest. `kind` is how `used` is known."""
    if not ranks:
        return [Part("other", Amount(used, kind))]
    processes = _sum([rank.process for rank in ranks])
    if not processes.known:
        parts = [*_fitting(ranks, used), Part("runtime", processes)]
        rest = Amount(max(0.0, used - _known(parts)), "derived")
        return [*parts, Part("undivided", rest), Part("other", unknown(NOT_TOLD_APART))]
    inside = min(_number(processes), used)
    return [*_engines(ranks, inside, processes), Part("other", Amount(used - inside, "derived"))]


def _engines(ranks: Sequence[Held], inside: float, processes: Amount) -> list[Part]:
    """What the engines' processes take, part by part."""
    parts = _fitting(ranks, inside)
    rest = Amount(max(0.0, inside - _known(parts)), "derived", processes.source)
    if any(part.amount.kind == "estimated" for part in parts):
        return [*parts, Part("runtime", unknown(NOT_TOUCHED))]
    if all(part.amount.known for part in parts):
        return [*parts, Part("runtime", rest)]
    return [*parts, Part("runtime", unknown(NOT_TOLD_APART)), Part("undivided", rest)]


def _fitting(ranks: Sequence[Held], room: float) -> list[Part]:
    """Weights and cache as they are in memory: a cache is touched only as it fills up."""
    weights, kv = _sum([rank.weights for rank in ranks]), _sum([rank.kv for rank in ranks])
    parts = [Part("weights", weights), Part("kv", kv)]
    known = _known(parts)
    if known <= room:
        return parts
    if weights.known and kv.known and _number(weights) < room:
        return [parts[0], Part("kv", Amount(room - _number(weights), "estimated", kv.source))]
    return [_scaled(part, room / known) for part in parts]


def _known(parts: Sequence[Part]) -> float:
    return sum(part.amount.bytes or 0.0 for part in parts)


def _held(ranks: Sequence[Held]) -> list[Part]:
    """The engines' parts where nothing says how much is in use at all."""
    if not ranks:
        return []
    return [
        Part("weights", _sum([rank.weights for rank in ranks])),
        Part("kv", _sum([rank.kv for rank in ranks])),
        Part("runtime", unknown(NOT_TOLD_APART)),
    ]


def _reclaimable(host: Host, available: float) -> list[Part]:
    """What is not in use: cache that gives way, what engines must leave, and the rest."""
    cache = min(host.page_cache.bytes or 0.0, available)
    left = available - cache
    floor = min(host.floor.bytes or 0.0, left)
    parts = [Part("page_cache", _as(host.page_cache, cache, NO_CACHE_READING))]
    parts.append(Part("free", Amount(left - floor, "derived", host.available.source)))
    parts.append(Part("floor", _as(host.floor, floor, host.floor.reason)))
    return parts


def _as(amount: Amount, number: float, reason: str) -> Amount:
    if not amount.known:
        return unknown(reason or UNTOLD)
    return Amount(number, amount.kind, amount.source)


def _bar(total: Amount, parts: Sequence[Part]) -> Bar:
    whole = total.bytes or 0.0
    return Bar(
        total,
        [
            Part(part.name, part.amount, (part.amount.bytes or 0.0) / whole if whole else 0.0)
            for part in parts
        ],
    )


def _sum(amounts: Sequence[Amount]) -> Amount:
    """None when any is: a sum that leaves something out would pass for the whole."""
    missing = next((amount for amount in amounts if not amount.known), None)
    if missing is not None or not amounts:
        return missing or UNKNOWN
    total = sum(_number(amount) for amount in amounts)
    return Amount(total, _widest(*amounts), amounts[0].source)


def _scaled(part: Part, factor: float) -> Part:
    amount = part.amount
    if amount.bytes is None:
        return part
    return Part(part.name, Amount(amount.bytes * factor, "estimated", amount.source))


_FIRMNESS: tuple[Kind, ...] = ("measured", "calibrated", "derived", "estimated", "declared")


def _widest(*amounts: Amount) -> Kind:
    """The least firm of several kinds: a sum is as firm as its weakest part."""
    return max((amount.kind for amount in amounts), key=_FIRMNESS.index)


def _number(amount: Amount) -> float:
    assert amount.bytes is not None
    return amount.bytes
