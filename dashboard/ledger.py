"""The books of a time: what each box drew, what that cost, and which deployment it was for."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Literal

from django.db.models import Q
from django.utils import timezone

from dashboard.models import Deployment, Node, Replica
from monitoring.accounts import energy
from monitoring.accounts.costs import electricity
from monitoring.accounts.energy import Account, Tenure, Tokens, Used
from monitoring.accounts.tariffs import Priced, Tariff
from monitoring.metrics import ENERGY, GENERATED_TOKENS, PROMPT_TOKENS
from monitoring.models import PriceList
from monitoring.scopes import NOTHING, Hidden, Subject
from monitoring.storage.series import gains

SpanName = Literal["day", "week", "month", "year"]
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SPANS: dict[SpanName, tuple[timedelta, timedelta]] = {
    "day": (DAY, 5 * MINUTE),
    "week": (7 * DAY, 30 * MINUTE),
    "month": (30 * DAY, HOUR),
    "year": (365 * DAY, HOUR),
}
"""How long each is, and in what steps it is read."""
MOST_BUCKETS = 50_000
"""Of all boxes together; a large fleet is read in longer steps."""
STEPS = (5 * MINUTE, 30 * MINUTE, HOUR, DAY)
SEEN = 0.9
"""A box whose own meters tell this much of the time is not asked for its parts."""


@dataclass(frozen=True)
class Window:
    name: SpanName
    since: datetime
    until: datetime
    step: timedelta

    @classmethod
    def up_to(cls, now: datetime, name: SpanName, boxes: int) -> "Window":
        length, finest = SPANS[name]
        coarser = [step for step in STEPS if step >= finest]
        fit = [step for step in coarser if boxes * (length / step) <= MOST_BUCKETS]
        step = min(fit, default=DAY)
        whole = timedelta(seconds=now.timestamp() % step.total_seconds())
        return cls(name, now - whole + step - length, now, step)

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()

    @property
    def days(self) -> Decimal:
        return Decimal(str(self.seconds)) / 86_400


@dataclass(frozen=True)
class Sum:
    """What some buckets come to."""

    priced: Priced
    joules: float
    covered: float
    """Seconds of a box."""
    bases: frozenset[energy.Basis]
    kinds: frozenset[str]

    @property
    def kind(self) -> str:
        return energy.weakest(self.kinds) if self.kinds else "unavailable"

    @property
    def basis_words(self) -> list[str]:
        return [energy.BASES[basis] for basis in energy.BASES if basis in self.bases]


@dataclass(frozen=True)
class Ledger:
    window: Window
    prices: PriceList
    nodes: Mapping[int, Node]
    deployments: Mapping[int, Deployment]
    boxes: Mapping[tuple[int, float], Used]
    tenures: Sequence[Tenure]
    work: Mapping[tuple[str, float], Tokens]
    left_out: int = 0
    """Simulated nodes that do not count."""

    @property
    def simulated(self) -> bool:
        """Whether all of it is made up."""
        return any(node.simulated for node in self.nodes.values())

    @property
    def step(self) -> float:
        return self.window.step.total_seconds()

    @cached_property
    def tariff_known(self) -> bool:
        return bool(self._tariff.rates)

    @cached_property
    def priced(self) -> dict[tuple[int, float], Priced]:
        return electricity(self.boxes, self.step, self._tariff)

    @cached_property
    def accounts(self) -> dict[int, Account]:
        return energy.accounts(self.boxes, self.step, self.tenures, self.work)

    @cached_property
    def at_work(self) -> set[tuple[int, float]]:
        return energy.busy(self.tenures, self.work)

    @cached_property
    def idle(self) -> dict[int, float]:
        """Node -> watts."""
        return energy.idle_watts(self.boxes, self.at_work)

    @property
    def idle_share(self) -> float | None:
        return energy.idle_share(self.boxes, self.at_work)

    @cached_property
    def tokens(self) -> Tokens:
        return sum(self.work.values(), Tokens())

    def total(self) -> Sum:
        return self._sum(self.boxes)

    def of_node(self, node: int) -> Sum:
        return self._sum(self._by_node.get(node, []))

    def by_period(self) -> list[tuple[str, Sum | None]]:
        """Hours of a day, days of a month, months of a year, by the tariff's clock and in order.
        None where nothing is known."""
        periods: dict[str, list[tuple[int, float]]] = defaultdict(list)
        begin, step = self.window.since.timestamp(), self.step
        names = [
            self._period(begin + index * step)
            for index in range(-(-int(self.window.seconds) // int(step)))
        ]
        for key in self.boxes:
            periods[self._period(key[1])].append(key)
        return [
            (name, self._sum(periods[name]) if name in periods else None)
            for name in dict.fromkeys(names)
        ]

    def _period(self, at: float) -> str:
        local = datetime.fromtimestamp(at, self._tariff.zone)
        form = {"day": "%m-%d %H:00", "year": "%Y-%m"}.get(self.window.name, "%Y-%m-%d")
        return local.strftime(form)

    def cost_of(self, account: Account) -> Priced:
        """A deployment's part of what its boxes cost."""
        total = Priced()
        for key, share in account.shares.items():
            one, part = self.priced[key], Decimal(str(share))
            total += Priced(one.kwh * part, one.amount * part, one.unpriced * part)
        return total

    def coverage(self, covered: float, boxes: int) -> float | None:
        """Share of the time of so many boxes."""
        whole = self.window.seconds * boxes
        return min(1.0, covered / whole) if whole > 0 else None

    @cached_property
    def _by_node(self) -> dict[int, list[tuple[int, float]]]:
        found: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for key in self.boxes:
            found[key[0]].append(key)
        return found

    @cached_property
    def _tariff(self) -> Tariff:
        return self.prices.tariff

    def _sum(self, keys: Iterable[tuple[int, float]]) -> Sum:
        picked = list(keys)
        used = [self.boxes[key] for key in picked]
        return Sum(
            sum((self.priced[key] for key in picked), Priced()),
            sum(one.joules for one in used),
            sum(one.covered for one in used),
            frozenset(one.basis for one in used),
            frozenset(one.kind for one in used),
        )


def open_ledger(name: SpanName, now: datetime | None = None, hidden: Hidden = NOTHING) -> Ledger:
    """Of what may be seen of the fleet, up to now."""
    now = now or timezone.now()
    nodes, left_out = _counted(hidden)
    window = Window.up_to(now, name, len(nodes))
    tenures = _tenures(window, hidden)
    named = {tenure.deployment for tenure in tenures}
    return Ledger(
        window,
        PriceList.current(),
        nodes,
        {row.pk: row for row in Deployment.objects.filter(pk__in=named).order_by("name")},
        _boxes(nodes.values(), window),
        tenures,
        _work({tenure.launch for tenure in tenures}, window),
        left_out,
    )


def _counted(hidden: Hidden) -> tuple[dict[int, Node], int]:
    """What is made up never counts beside what is real; alone it is shown, and labelled."""
    found = list(Node.objects.exclude(pk__in=hidden.nodes).order_by("name"))
    real = [node for node in found if not node.simulated]
    counted = real or found
    return {node.pk: node for node in counted}, len(found) - len(counted)


def _tenures(window: Window, hidden: Hidden) -> list[Tenure]:
    rows = (
        Replica.objects.filter(created__lt=window.until)
        .exclude(deployment__in=hidden.deployments)
        .filter(Q(ended_at=None) | Q(ended_at__gt=window.since))
        .prefetch_related("ranks")
        .order_by("pk")
    )
    end = window.until + window.step
    return [
        Tenure(
            row.deployment_id,
            row.launch,
            frozenset(rank.node_id for rank in row.ranks.all()),
            row.created.timestamp(),
            (row.ended_at or end).timestamp(),
        )
        for row in rows
    ]


def _boxes(nodes: Iterable[Node], window: Window) -> dict[tuple[int, float], Used]:
    """Accelerators are asked for only where a box has no meter of its own: they are many. Two
    meters of the same minutes know no more of them than one."""
    rows = list(nodes)
    own = [Subject("node", node.name, node=node.pk) for node in rows]
    found = gains(own, [ENERGY.name], window.since, window.until, window.step)
    buckets: dict[tuple[int, float], float] = defaultdict(float)
    for gain in found:
        own_meter = gain.scope in ("wall", "host") and not gain.label
        if own_meter and gain.kind in ("measured", "calibrated"):
            key = energy.node_of(gain.topic), gain.at
            buckets[key] = max(buckets[key], gain.covered)
    known: dict[int, float] = defaultdict(float)
    for (node_pk, _at), covered in buckets.items():
        known[node_pk] += covered
    blind = [node for node in rows if known[node.pk] < SEEN * window.seconds]
    chips = [
        Subject(f"gpu:{chip.index}", chip.name, node=node.pk)
        for node in blind
        if node.hardware is not None
        for chip in node.hardware.accelerators
    ]
    if chips:
        found += gains(chips, [ENERGY.name], window.since, window.until, window.step)
    return energy.used_by_box(found)


def _work(launches: Iterable[str], window: Window) -> dict[tuple[str, float], Tokens]:
    subjects = [Subject(f"launch:{launch}", launch) for launch in sorted(launches)]
    if not subjects:
        return {}
    names = [PROMPT_TOKENS.name, GENERATED_TOKENS.name]
    work: dict[tuple[str, float], Tokens] = {}
    for gain in gains(subjects, names, window.since, window.until, window.step):
        if gain.label:
            continue
        key = gain.topic.removeprefix("launch:"), gain.at
        prompt = gain.metric == PROMPT_TOKENS.name
        tokens = Tokens(prompt=gain.amount) if prompt else Tokens(generated=gain.amount)
        work[key] = work.get(key, Tokens()) + tokens
    return work
