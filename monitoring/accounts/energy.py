"""Energy from counters: which scope counts, how much of the time is covered, who used it. Pure.

Scopes overlap and are never added up. What one box used is told by its widest measured scope; only
accelerators and processors, which have no part in common, may be put together, and then it is said
what they leave out.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from monitoring.samples import gettext_noop as _

if TYPE_CHECKING:
    from monitoring.storage.series import Gain

Basis = Literal["wall", "host", "parts", "accelerators", "processors"]

BASES: dict[Basis, str] = {
    "wall": _("At the wall: all that the box draws."),
    "host": _("As the box meters itself: what is lost outside its own meter is not in it."),
    "parts": _(
        "Accelerators and processors only: the rest of the box and the loss of its power supply "
        "are not in it."
    ),
    "accelerators": _(
        "Accelerators only: processors, the rest of the box and the loss of its power supply are "
        "not in it."
    ),
    "processors": _(
        "Processors only: the rest of the box and the loss of its power supply are not in it."
    ),
}
"""What a figure is of, said to whoever reads it."""

LEAST_TOKENS = 1000
"""Fewer say nothing about what one costs."""
WHOLE = 0.9
"""Share of a bucket that must be covered for its tokens to be set against its energy."""
IDLE_SECONDS = 600.0
"""How long a box must have been seen idle for its idle power to be known."""

FEW_TOKENS = _("Fewer than 1000 tokens were generated in this time.")
NO_ENERGY = _("Not every box of it tells its energy in this time.")
NEVER_IDLE = _("Its boxes were not seen idle for ten minutes in this time.")

_TRUST = ("measured", "calibrated", "estimated", "derived", "declared")
_MEASURED = ("measured", "calibrated")


@dataclass(frozen=True)
class Used:
    """What one box used in one bucket."""

    joules: float
    covered: float
    """Seconds of the bucket for which it is known."""
    basis: Basis
    kind: str
    """That of its least certain part."""


def node_of(topic: str) -> int:
    """3 for `3/node` and `3/gpu:0`."""
    return int(topic.partition("/")[0])


def used_by_box(gains: Iterable["Gain"]) -> dict[tuple[int, float], Used]:
    """(node, beginning of the bucket) -> what it used; without what nothing is known of."""
    groups: dict[tuple[int, float], list[Gain]] = defaultdict(list)
    for gain in gains:
        groups[node_of(gain.topic), gain.at].append(gain)
    found = {key: used(group) for key, group in groups.items()}
    return {key: known for key, known in found.items() if known is not None}


def used(gains: Sequence["Gain"]) -> Used | None:
    """What one box used, of the gains of its scopes in one bucket.

    At the wall a label is one plug of several; without all of them nobody knows what it drew.
    """
    own = [g for g in gains if g.topic.endswith("/node")]
    chips = [g for g in gains if g.scope == "accelerator"]
    found = [
        _whole("wall", [g for g in own if g.scope == "wall" and not g.label]),
        _whole("host", [g for g in own if g.scope == "host"]),
        _parts(chips, [g for g in own if g.scope == "cpu"]),
    ]
    known = [one for one in found if one is not None and one.covered > 0]
    most = max((one.covered for one in known), default=0.0)
    fit = [one for one in known if one.covered >= most / 2]
    return next((one for one in fit if one.kind in _MEASURED), fit[0] if fit else None)


def _whole(basis: Basis, gains: Sequence["Gain"]) -> Used | None:
    """Several readings of the same thing: the most certain one, never their sum."""
    if not gains:
        return None
    best = min(gains, key=lambda g: (bool(g.label), _TRUST.index(g.kind), -g.covered))
    return Used(best.amount, best.covered, basis, best.kind)


def _parts(chips: Sequence["Gain"], processors: Sequence["Gain"]) -> Used | None:
    parts = {"accelerators": _sum(chips), "processors": _sum(_unlabelled(processors))}
    present = {name: part for name, part in parts.items() if part is not None}
    sure = {name: part for name, part in present.items() if part.kind in _MEASURED} or present
    if not sure:
        return None
    if len(sure) == 1:
        [(name, part)] = sure.items()
        basis: Basis = "accelerators" if name == "accelerators" else "processors"
        return Used(part.joules, part.covered, basis, part.kind)
    return Used(
        sum(part.joules for part in sure.values()),
        min(part.covered for part in sure.values()),
        "parts",
        weakest(part.kind for part in sure.values()),
    )


def _unlabelled(gains: Sequence["Gain"]) -> Sequence["Gain"]:
    """Of readings with and without a label, those without are the sum of the others."""
    return [g for g in gains if not g.label] or gains


def _sum(gains: Sequence["Gain"]) -> Used | None:
    """Of parts that are beside one another. What is covered is so on average over them."""
    if not gains:
        return None
    covered = sum(g.covered for g in gains) / len(gains)
    joules = sum(g.amount for g in gains)
    return Used(joules, covered, "accelerators", weakest(g.kind for g in gains))


def weakest(kinds: Iterable[str]) -> str:
    return max(kinds, key=_TRUST.index)


@dataclass(frozen=True)
class Tokens:
    prompt: float = 0.0
    generated: float = 0.0

    @property
    def all(self) -> float:
        return self.prompt + self.generated

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.prompt + other.prompt, self.generated + other.generated)


@dataclass(frozen=True)
class Tenure:
    """One launch held these boxes for a time, in Unix seconds."""

    deployment: int
    launch: str
    nodes: frozenset[int]
    since: float
    until: float

    def share_of(self, at: float, step: float) -> float:
        """Of the bucket that begins at `at`."""
        return max(0.0, min(self.until, at + step) - max(self.since, at)) / step


@dataclass
class Account:
    """What one deployment used, and what it made of it.

    Buckets in which not all its boxes are covered count neither for the energy nor for the tokens.
    """

    joules: float = 0.0
    tokens: Tokens = Tokens()
    seconds: float = 0.0
    """Of the buckets that count."""
    left_out: float = 0.0
    """Seconds of those that do not."""
    shared: bool = False
    """Boxes that it had in common with another deployment were divided."""
    held: dict[int, float] = field(default_factory=dict)
    """Node -> seconds of it that were this deployment's."""
    shares: dict[tuple[int, float], float] = field(default_factory=dict)
    """(node, bucket) -> the part of it that was this deployment's."""
    bases: set[Basis] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)

    @property
    def kind(self) -> str:
        """A quotient is derived, but from an estimate it is no better than that."""
        worst = weakest(self.kinds) if self.kinds else "unavailable"
        return "derived" if worst in _MEASURED else worst


Work = Mapping[tuple[str, float], Tokens]
"""(launch, beginning of the bucket) -> what it read and wrote."""


def accounts(
    boxes: Mapping[tuple[int, float], Used], step: float, tenures: Sequence[Tenure], work: Work
) -> dict[int, Account]:
    """Deployment -> what it used and made.

    A box that several deployments had at once is divided by the tokens that each of them handled in
    the bucket; where none handled any, by how long each had it.
    """
    found: dict[int, Account] = {t.deployment: Account() for t in tenures}
    for at in sorted({at for _node, at in boxes} | {at for _launch, at in work}):
        here = [t for t in tenures if t.share_of(at, step) > 0]
        for deployment in {t.deployment for t in here}:
            _book(found[deployment], deployment, at, step, here, boxes, work)
    return found


def _book(
    account: Account,
    deployment: int,
    at: float,
    step: float,
    here: Sequence[Tenure],
    boxes: Mapping[tuple[int, float], Used],
    work: Work,
) -> None:
    mine = [t for t in here if t.deployment == deployment]
    nodes = frozenset[int]().union(*(t.nodes for t in mine))
    known = {node: boxes.get((node, at)) for node in nodes}
    if not all(one and one.covered >= WHOLE * step for one in known.values()):
        account.left_out += step
        return
    account.seconds += step
    for launch in {t.launch for t in mine}:
        account.tokens += work.get((launch, at), Tokens())
    for node, one in known.items():
        assert one is not None
        share = _share(node, deployment, at, step, here, work)
        account.joules += one.joules * share
        account.shares[node, at] = share
        account.held[node] = account.held.get(node, 0.0) + one.covered * share
        account.shared |= len({t.deployment for t in here if node in t.nodes}) > 1
        account.bases.add(one.basis)
        account.kinds.add(one.kind)


def _share(
    node: int, deployment: int, at: float, step: float, here: Sequence[Tenure], work: Work
) -> float:
    """The deployment's part of a box in one bucket."""
    times: dict[int, float] = defaultdict(float)
    tokens: dict[int, float] = defaultdict(float)
    for tenure in here:
        if node in tenure.nodes:
            times[tenure.deployment] = max(times[tenure.deployment], tenure.share_of(at, step))
            tokens[tenure.deployment] += work.get((tenure.launch, at), Tokens()).all
    taken, everything = max(times.values()), sum(tokens.values())
    if everything > 0:
        return taken * tokens[deployment] / everything
    return taken * times[deployment] / sum(times.values())


def busy(tenures: Sequence[Tenure], work: Work) -> set[tuple[int, float]]:
    """(node, bucket) in which an engine that holds the box read or wrote a token."""
    nodes: dict[str, frozenset[int]] = {}
    for tenure in tenures:
        nodes[tenure.launch] = nodes.get(tenure.launch, frozenset()) | tenure.nodes
    return {
        (node, at)
        for (launch, at), tokens in work.items()
        if tokens.all > 0
        for node in nodes.get(launch, ())
    }


def idle_watts(
    boxes: Mapping[tuple[int, float], Used], at_work: set[tuple[int, float]]
) -> dict[int, float]:
    """Node -> its mean power in buckets without a token; without those never seen idle enough."""
    joules: dict[int, float] = defaultdict(float)
    seconds: dict[int, float] = defaultdict(float)
    for key, one in boxes.items():
        if key not in at_work:
            joules[key[0]] += one.joules
            seconds[key[0]] += one.covered
    return {node: joules[node] / s for node, s in seconds.items() if s >= IDLE_SECONDS}


def idle_share(
    boxes: Mapping[tuple[int, float], Used], at_work: set[tuple[int, float]]
) -> float | None:
    """Of all energy, the part drawn in buckets without a token."""
    total = sum(one.joules for one in boxes.values())
    if total <= 0:
        return None
    return sum(one.joules for key, one in boxes.items() if key not in at_work) / total


@dataclass(frozen=True)
class PerToken:
    """Joules for one token, or why that is not known."""

    generated: float | None = None
    any: float | None = None
    """For one that was read or written."""
    above_idle: float | None = None
    """For one generated, without what the boxes would have drawn anyway."""
    reason: str = ""
    idle_reason: str = ""


def per_token(account: Account, idle: Mapping[int, float]) -> PerToken:
    if not account.seconds:
        return PerToken(reason=NO_ENERGY, idle_reason=NO_ENERGY)
    if account.tokens.generated < LEAST_TOKENS:
        return PerToken(reason=FEW_TOKENS, idle_reason=FEW_TOKENS)
    above, why = None, NEVER_IDLE
    if all(node in idle for node in account.held):
        base = sum(idle[node] * seconds for node, seconds in account.held.items())
        above, why = (account.joules - base) / account.tokens.generated, ""
    return PerToken(
        account.joules / account.tokens.generated,
        account.joules / account.tokens.all,
        above,
        "",
        why,
    )
