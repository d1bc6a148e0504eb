"""From a model, a plan and the nodes there are to which rank runs where. Pure."""

from collections.abc import Sequence

import msgspec
from django.utils.translation import gettext_noop as _

from dashboard.errors import PlacementError
from dashboard.sentences import Sentence, sentence_of
from engine.abilities import FAST_INT8, check_abilities
from engine.config import EngineConfig
from engine.errors import ConfigError, PlanError
from engine.model_config import ModelConfig
from engine.planner import rank_memory
from engine.spans import split_evenly

USABLE = 0.9
"""Part of a node's memory that engines may plan for; the rest is the system's."""
HEAD_BYTES = 250 * 2**20
"""What a head process takes: Python, tokenizer and caches."""


class NodeCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """A node as placement sees it."""

    pk: int
    name: str
    online: bool
    schedulable: bool
    evacuated: bool = False
    """Out of service for a while; it will be back."""
    seen: bool = True
    """Whether its agent has ever been here."""
    machine: str
    """Nodes of one machine share its memory."""
    memory_bytes: int | None
    """None: not known, and then nothing is refused for want of memory."""
    floor_bytes: int = 0
    """To stay free of engines."""
    promised_bytes: int = 0
    """Planned for ranks that are placed here already."""
    ranks: int = 0
    instruction_sets: frozenset[str] | None = None
    """What its processor can do; None: not known, and then nothing is refused for it."""
    gpus: int | None = None
    """NVIDIA GPUs that its agent sees; None: not known, and then nothing is refused for it."""

    @property
    def usable(self) -> bool:
        return self.online and self.schedulable and not self.evacuated

    @property
    def integer_dot_products(self) -> bool:
        """Whether int8 weights stay int8 here; elsewhere they take as much room as fp32."""
        return bool(FAST_INT8 & (self.instruction_sets or frozenset()))


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    ranks: list[int]
    """Node of each rank, in rank order."""
    head: int
    bytes_per_rank: list[int]


class Limit(msgspec.Struct, frozen=True):
    """The first machine that a distribution does not fit."""

    node: str
    needed: int
    free: int
    ranks: list[int]


def rank_bytes(model: ModelConfig, config: EngineConfig, *, dot_products: bool) -> list[int]:
    """Memory each rank needs. Raises PlanError when the plan cannot split the model."""
    return [
        rank_memory(model, config, rank, integer_dot_products=dot_products).total
        for rank in range(config.plan.world_size)
    ]


def place(model: ModelConfig, config: EngineConfig, nodes: Sequence[NodeCapacity]) -> Placement:
    """Spread the ranks evenly over as many usable nodes as there are, neighbours together.

    Raises PlacementError naming the limit, by how much it is passed and what would help.
    """
    usable = sorted((node for node in nodes if node.usable), key=lambda n: (n.ranks, n.name))
    usable = _able(config, usable)
    needs = _needs(model, config, usable)
    if not usable:
        raise PlacementError(_nobody(nodes))
    even = [_spread(needs, usable[:count]) for count in range(min(len(usable), len(needs)), 0, -1)]
    filled = _fill(needs, usable)
    for ranks in even + ([filled] if filled else []):
        if _exceeded(ranks, needs, nodes) is None:
            return Placement(ranks=ranks, head=ranks[0], bytes_per_rank=needs)
    limit = _exceeded(even[0], needs, nodes)
    raise PlacementError(_too_big(limit, nodes) if limit else _nobody(nodes))


def place_together(
    model: ModelConfig, config: EngineConfig, nodes: Sequence[NodeCapacity], prefer: int | None
) -> Placement:
    """All ranks on one node: `prefer`, else the one with most memory free.

    Raises PlacementError naming what the best of them lacks.
    """
    usable = _able(config, [node for node in nodes if node.usable])
    if not usable:
        raise PlacementError(_nobody(nodes))
    free = _free(nodes)
    best = sorted(usable, key=lambda n: (n.pk != prefer, -free.get(n.machine, 0), n.name))
    limits = []
    for node in best:
        needs = _needs(model, config, [node])
        ranks = [node.pk] * len(needs)
        limit = _exceeded(ranks, needs, nodes)
        if limit is None:
            return Placement(ranks=ranks, head=node.pk, bytes_per_rank=needs)
        limits.append(limit)
    raise PlacementError(_too_big(min(limits, key=lambda limit: limit.needed - limit.free), nodes))


def missing(
    placement: Placement,
    model: ModelConfig,
    config: EngineConfig,
    nodes: Sequence[NodeCapacity],
) -> list[str]:
    """Names of the nodes that will be back and without which the ranks crowd on fewer boxes."""
    away = [
        node
        for node in nodes
        if node.schedulable and node.seen and (node.evacuated or not node.online)
    ]
    if not away:
        return []
    whole = [
        msgspec.structs.replace(node, online=True, evacuated=False) if node in away else node
        for node in nodes
    ]
    wide = place(model, config, whole)
    crowded = len(set(placement.ranks)) < len(set(wide.ranks))
    return [node.name for node in away if node.pk in wide.ranks] if crowded else []


def _needs(model: ModelConfig, config: EngineConfig, nodes: Sequence[NodeCapacity]) -> list[int]:
    dot_products = all(node.integer_dot_products for node in nodes)
    try:
        return rank_bytes(model, config, dot_products=dot_products)
    except PlanError as error:
        raise PlacementError(sentence_of(error)) from error


def _able(config: EngineConfig, nodes: Sequence[NodeCapacity]) -> list[NodeCapacity]:
    """The nodes that have the device and know the number types asked for; raises when none does."""
    if config.device == "cuda":
        with_gpus = [node for node in nodes if node.gpus != 0]
        if nodes and not with_gpus:
            words = _("No node that can be used has an NVIDIA GPU; choose the device cpu.")
            raise PlacementError(Sentence(words))
        return with_gpus
    able: list[NodeCapacity] = []
    refusal: ConfigError | None = None
    for node in nodes:
        try:
            if node.instruction_sets is not None:
                check_abilities(config, node.instruction_sets)
            able.append(node)
        except ConfigError as error:
            refusal = refusal or error
    if refusal is not None and not able:
        raise PlacementError(sentence_of(refusal)) from refusal
    return able


def _spread(needs: Sequence[int], nodes: Sequence[NodeCapacity]) -> list[int]:
    spans = split_evenly(len(needs), len(nodes))
    return [node.pk for node, span in zip(nodes, spans, strict=True) for _rank in range(span.size)]


def _fill(needs: Sequence[int], nodes: Sequence[NodeCapacity]) -> list[int] | None:
    """For unequal nodes: the roomiest takes as many ranks as fit, then the next."""
    free = _free(nodes)
    ranks: list[int] = []
    for node in sorted(nodes, key=lambda n: -free.get(n.machine, 0)):
        while len(ranks) < len(needs):
            need = needs[len(ranks)] + (0 if ranks else HEAD_BYTES)
            if node.machine in free and free[node.machine] < need:
                break
            if node.machine in free:
                free[node.machine] -= need
            ranks.append(node.pk)
    return ranks if len(ranks) == len(needs) else None


def _exceeded(
    ranks: Sequence[int], needs: Sequence[int], nodes: Sequence[NodeCapacity]
) -> Limit | None:
    free, by_pk = _free(nodes), {node.pk: node for node in nodes}
    used: dict[str, int] = {by_pk[ranks[0]].machine: HEAD_BYTES}
    for pk, need in zip(ranks, needs, strict=True):
        machine = by_pk[pk].machine
        used[machine] = used.get(machine, 0) + need
    for pk in dict.fromkeys(ranks):
        node = by_pk[pk]
        if node.machine in free and used[node.machine] > free[node.machine]:
            placed = [rank for rank, at in enumerate(ranks) if by_pk[at].machine == node.machine]
            return Limit(node.name, used[node.machine], free[node.machine], placed)
    return None


def _free(nodes: Sequence[NodeCapacity]) -> dict[str, int]:
    """Bytes left on each machine whose memory is known."""
    total: dict[str, int] = {}
    for node in nodes:
        if node.memory_bytes is not None:
            room = min(int(node.memory_bytes * USABLE), node.memory_bytes - node.floor_bytes)
            total[node.machine] = min(room, total.get(node.machine, room))
    for node in nodes:
        if node.machine in total:
            total[node.machine] -= node.promised_bytes
    return {machine: max(0, left) for machine, left in total.items()}


def _nobody(nodes: Sequence[NodeCapacity]) -> Sentence:
    if not nodes:
        return Sentence(_("There is no node yet; add one and start its agent."))
    offline = [node.name for node in nodes if not node.online]
    if offline:
        return Sentence(
            _("No node can take ranks: %(nodes)s offline; start the agent there."),
            nodes=", ".join(offline),
        )
    return Sentence(
        _("Every node is closed for new ranks or out of service; open one on the nodes page.")
    )


def _too_big(limit: Limit, nodes: Sequence[NodeCapacity]) -> Sentence:
    offline = ", ".join(node.name for node in nodes if node.schedulable and not node.online)
    sizes = {
        "node": limit.node,
        "ranks": ", ".join(map(str, limit.ranks)),
        "needed": gigabytes(limit.needed),
        "free": gigabytes(limit.free),
        "short": gigabytes(limit.needed - limit.free),
        "offline": offline,
    }
    if offline:
        return Sentence(
            _(
                "Ranks %(ranks)s need %(needed)s on %(node)s, which has %(free)s free, %(short)s "
                "too little; %(offline)s offline, and bringing that back would help."
            ),
            **sizes,
        )
    return Sentence(
        _(
            "Ranks %(ranks)s need %(needed)s on %(node)s, which has %(free)s free, %(short)s too "
            "little; int8, a smaller KV cache or another node would help."
        ),
        **sizes,
    )


def gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
