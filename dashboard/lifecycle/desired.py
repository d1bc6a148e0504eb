"""What a node should run, as its agent is told."""

from collections.abc import Iterator

from django.db.models import Q

from dashboard.choices import LIVE_REPLICA_STATUSES
from dashboard.models import Node, Replica
from engine.protocol.agent import Desired
from engine.protocol.launch import Address, ProcessSpec, Role


def desired_for(node_id: int) -> Desired:
    """The node's full desired state.

    The generation is read before the processes: should a change slip in between, the agent gets
    it now under the old number and once more, with the next nudge, under the new one.
    """
    node = Node.objects.get(pk=node_id)
    replicas = (
        Replica.objects.filter(status__in=LIVE_REPLICA_STATUSES)
        .filter(Q(head_node=node) | Q(ranks__node=node))
        .distinct()
        .select_related("deployment__model")
        .order_by("pk")
    )
    specs = [spec for replica in replicas for spec in _specs(replica, node)]
    return Desired(node.desired_generation, specs)


def _specs(replica: Replica, node: Node) -> Iterator[ProcessSpec]:
    if replica.head_node_id == node.pk:
        yield _spec(replica, node, "head", None)
    for rank in replica.ranks.filter(node=node):
        yield _spec(replica, node, "rank", rank.rank)


def _spec(replica: Replica, node: Node, role: Role, rank: int | None) -> ProcessSpec:
    deployment = replica.deployment
    return ProcessSpec(
        launch=replica.launch,
        token=replica.token,
        role=role,
        rank=rank,
        driver=deployment.driver,
        model_path=deployment.model.path,
        served_name=deployment.name,
        revision=deployment.model.revision,
        config=replica.engine_config,
        host=node.address,
        http=Address(replica.host, replica.http_port),
        control=Address(replica.host, replica.control_port),
    )
