"""What placement needs to know, read from the database."""

from collections.abc import Collection

from django.utils.translation import gettext_noop as _

from dashboard.choices import (
    ANSWERING_REPLICA_STATUSES,
    LIVE_REPLICA_STATUSES,
    NodeStatus,
    ReplicaRole,
)
from dashboard.errors import PlacementError
from dashboard.models import Node, Rank, Replica, Slot
from dashboard.placement import NodeCapacity, Placement, missing, place, place_together, rank_bytes
from dashboard.sentences import Sentence
from engine.abilities import FAST_INT8


def find_placement(slot: Slot) -> Placement:
    """Raises PlacementError or ConfigError with the reason why it cannot run now.

    With a fallback to answer meanwhile, a primary waits for all its boxes instead of crowding on
    those that are left.
    """
    shape, config, nodes = slot.served_model.shape, slot.engine_config, capacities(slot)
    if slot.is_fallback:
        return place_together(shape, config, nodes, _node_of_the_head(slot))
    placement = place(shape, config, nodes)
    if slot.role == ReplicaRole.PRIMARY and slot.deployment.fallback_or_none is not None:
        away = missing(placement, shape, config, nodes)
        if away:
            raise PlacementError(_away(away))
    return placement


def _away(names: list[str]) -> Sentence:
    out = Node.objects.filter(name__in=names, evacuated=True).exists()
    words = _("%(node)s is out of service.") if out else _("%(node)s is offline.")
    return Sentence(words, node=", ".join(names))


def _node_of_the_head(slot: Slot) -> int | None:
    """Where requests reach the primary they are likely to reach the fallback too."""
    heads = slot.deployment.replicas.filter(
        role="primary", status__in=[*ANSWERING_REPLICA_STATUSES, "starting"]
    )
    return heads.order_by("index").values_list("head_node", flat=True).first()


def capacities(slot: Slot, gone: Collection[int] = ()) -> list[NodeCapacity]:
    """Every node, with what the live ranks of all other slots were promised there; launches that
    will be `gone` (primary keys) count no more."""
    promised: dict[int, list[int]] = {}
    ranks: dict[int, int] = {}
    left_out = [*slot.launches.values_list("pk", flat=True), *gone]
    others = Rank.objects.filter(replica__status__in=LIVE_REPLICA_STATUSES)
    for rank in others.exclude(replica__in=left_out).select_related(
        "replica__deployment__model", "replica__model", "node"
    ):
        promised.setdefault(rank.node_id, []).append(_promise(rank))
        if not _stands_behind(rank.replica, slot):
            ranks[rank.node_id] = ranks.get(rank.node_id, 0) + 1
    return [
        _capacity(node, slot, sum(promised.get(node.pk, [])), ranks.get(node.pk, 0))
        for node in Node.objects.all()
    ]


def _stands_behind(replica: Replica, slot: Slot) -> bool:
    """Its own fallback works when it does not: it does not crowd a primary."""
    return replica.role == ReplicaRole.FALLBACK and replica.deployment_id == slot.deployment_id


def _promise(rank: Rank) -> int:
    """Bytes it was placed with; reckoned anew for launches of before that was noted."""
    if rank.planned_bytes is not None:
        return rank.planned_bytes
    replica: Replica = rank.replica
    model = replica.model or replica.deployment.model
    config = replica.engine_config
    dot_products = _has_dot_products(rank.node)
    return rank_bytes(model.shape, config, dot_products=dot_products)[rank.rank]


def _capacity(node: Node, slot: Slot, promised: int, ranks: int) -> NodeCapacity:
    hardware = node.hardware
    loopback = node.engine_address.startswith("127.")
    return NodeCapacity(
        pk=node.pk,
        name=node.name,
        online=node.status == NodeStatus.ONLINE,
        schedulable=node.schedulable and node.pk not in slot.avoid,
        evacuated=node.evacuated,
        seen=node.status != NodeStatus.PENDING,
        # Agents on loopback addresses live on one machine, whatever they are called.
        machine="loopback" if loopback else node.name,
        memory_bytes=hardware.memory_bytes if hardware else None,
        floor_bytes=node.memory_floor_mb * 2**20,
        promised_bytes=promised,
        ranks=ranks,
        instruction_sets=frozenset(hardware.instruction_sets) if hardware else None,
        gpus=sum(one.vendor == "nvidia" for one in hardware.accelerators) if hardware else None,
    )


def _has_dot_products(node: Node) -> bool:
    hardware = node.hardware
    return bool(hardware and FAST_INT8 & set(hardware.instruction_sets))
