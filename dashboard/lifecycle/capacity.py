"""What placement needs to know, read from the database."""

from dashboard.choices import LIVE_REPLICA_STATUSES, NodeStatus
from dashboard.models import Deployment, Node, Rank
from dashboard.placement import NodeCapacity, Placement, place, rank_bytes
from engine.abilities import FAST_INT8


def find_placement(deployment: Deployment) -> Placement:
    """Raises PlacementError or ConfigError with the reason why it cannot run now."""
    return place(deployment.model.shape, deployment.engine_config, capacities(deployment))


def capacities(deployment: Deployment) -> list[NodeCapacity]:
    """Every node, with what other deployments' live ranks were promised there."""
    promised: dict[int, list[int]] = {}
    others = Rank.objects.filter(replica__status__in=LIVE_REPLICA_STATUSES)
    for rank in others.exclude(replica__deployment=deployment).select_related(
        "replica__deployment__model", "node"
    ):
        config, shape = rank.replica.engine_config, rank.replica.deployment.model.shape
        needs = rank_bytes(shape, config, dot_products=_has_dot_products(rank.node))
        promised.setdefault(rank.node_id, []).append(needs[rank.rank])
    return [_capacity(node, promised.get(node.pk, [])) for node in Node.objects.all()]


def _capacity(node: Node, promised: list[int]) -> NodeCapacity:
    hardware = node.hardware
    loopback = node.address.startswith("127.")
    return NodeCapacity(
        pk=node.pk,
        name=node.name,
        online=node.status == NodeStatus.ONLINE,
        schedulable=node.schedulable,
        # Agents on loopback addresses live on one machine, whatever they are called.
        machine="loopback" if loopback else node.name,
        memory_bytes=hardware.memory_bytes if hardware else None,
        promised_bytes=sum(promised),
        ranks=len(promised),
        instruction_sets=frozenset(hardware.instruction_sets) if hardware else None,
    )


def _has_dot_products(node: Node) -> bool:
    hardware = node.hardware
    return bool(hardware and FAST_INT8 & set(hardware.instruction_sets))
