"""What a node should run, as its agent is told."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from django.db.models import Q

from dashboard.choices import LIVE_REPLICA_STATUSES
from dashboard.lifecycle.environment import environment_for
from dashboard.lifecycle.limits import limits_for
from dashboard.lifecycle.neighbours import watched_by
from dashboard.lifecycle.orders import orders_for
from dashboard.lifecycle.sources import sources_for
from dashboard.models import Node, Replica
from dashboard.placement import HEAD_BYTES
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
        .select_related("deployment__model", "model", "head_node")
        .order_by("pk")
    )
    specs = [spec for replica in replicas for spec in _specs(replica, node)]
    heads = [(r.launch, r.deployment_id) for r in replicas if r.head_node_id == node.pk]
    return Desired(
        node.desired_generation,
        specs,
        sources=sources_for(node),
        limits=limits_for(node, heads),
        watch=watched_by(node, replicas),
        environment=environment_for(node),
        orders=orders_for(node),
    )


def _specs(replica: Replica, node: Node) -> Iterator[ProcessSpec]:
    ranks = list(replica.ranks.select_related("node"))
    cable = all(
        nodes.link_address for nodes in (replica.head_node, *(rank.node for rank in ranks))
    ) and any(rank.node_id != replica.head_node_id for rank in ranks)
    if replica.head_node_id == node.pk:
        yield _spec(replica, node, "head", None, HEAD_BYTES, cable)
    for rank in ranks:
        if rank.node_id == node.pk:
            yield _spec(replica, node, "rank", rank.rank, rank.planned_bytes, cable)


def _spec(
    replica: Replica,
    node: Node,
    role: Role,
    rank: int | None,
    planned_bytes: int | None,
    cable: bool,
) -> ProcessSpec:
    """`cable`: head and ranks meet at their nodes' addresses on it."""
    deployment = replica.deployment
    model = replica.model or deployment.model
    control = replica.head_node.link_address if cable else replica.host
    return ProcessSpec(
        launch=replica.launch,
        token=replica.token,
        role=role,
        rank=rank,
        driver=deployment.driver,
        model_path=_path_on(node, model.path),
        served_name=deployment.name,
        revision=model.revision,
        config=replica.engine_config,
        host=node.link_address if cable else node.engine_address,
        memory_floor=node.memory_floor_mb * 2**20,
        planned_bytes=planned_bytes,
        http=Address(replica.host, replica.http_port),
        control=Address(control, replica.control_port),
    )


def _path_on(node: Node, path: str) -> str:
    """By the same name in the node's own folder of models, where it has one."""
    folder = str(node.settings.get("model_folder") or "")
    return str(PurePosixPath(folder) / PurePosixPath(path).name) if folder else path
