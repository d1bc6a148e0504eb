"""Which nodes, accelerators, engines and ranks a page about something looks at."""

from collections.abc import Iterator

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from dashboard.models import Node, Rank, Replica
from monitoring.scopes import NOTHING, Hidden, ScopeName, Subject

MOST_LINES = 16
"""A fleet of more nodes, or more engines, is told summed up: nobody reads so many lines. Sums are
of the whole fleet; from whom some of it is hidden sees the first lines instead."""


def subjects(scope: ScopeName, pk: int | None, hidden: Hidden = NOTHING) -> list[Subject]:
    """Nodes first, then accelerators, engines, ranks. A scope whose row is gone has none."""
    if scope == "node":
        if pk in hidden.nodes:
            return []
        ranks = Rank.objects.filter(node=pk)
        ranks = ranks.exclude(replica__deployment__in=hidden.deployments)
        return [*_nodes(Node.objects.filter(pk__in=[pk])), *_ranks(ranks, with_node=False)]
    if scope == "deployment":
        if pk in hidden.deployments:
            return []
        ranks = Rank.objects.filter(replica__deployment=pk)
        nodes = Node.objects.filter(ranks__in=ranks.filter(replica__ended_at=None)).distinct()
        nodes = nodes.exclude(pk__in=hidden.nodes)
        engines = _engines(Replica.objects.filter(deployment=pk))
        return [*_nodes(nodes), *engines, *_ranks(ranks, with_node=True)]
    if scope == "everything":
        ranks = Rank.objects.exclude(node__in=hidden.nodes)
        return [
            *_nodes(Node.objects.exclude(pk__in=hidden.nodes)),
            *_engines(Replica.objects.exclude(deployment__in=hidden.deployments)),
            *_ranks(ranks.exclude(replica__deployment__in=hidden.deployments), with_node=True),
        ]
    return [*_fleet_nodes(hidden), *_fleet_engines(hidden)]


def _fleet_nodes(hidden: Hidden) -> list[Subject]:
    nodes = Node.objects.exclude(pk__in=hidden.nodes)
    if nodes.count() <= MOST_LINES:
        return list(_nodes(nodes))
    if hidden:
        return list(_nodes(nodes.order_by("name")[:MOST_LINES]))
    return [Subject("group:node", _("all nodes")), Subject("group:gpu", _("all accelerators"))]


def _fleet_engines(hidden: Hidden) -> list[Subject]:
    engines = list(_engines(Replica.objects.exclude(deployment__in=hidden.deployments)))
    if len(engines) <= MOST_LINES or hidden:
        return engines[:MOST_LINES]
    return [Subject("group:engine", _("all deployments"))]


def _nodes(nodes: QuerySet[Node]) -> list[Subject]:
    """Each with its accelerators, behind the nodes."""
    found = sorted(nodes, key=lambda node: node.name)
    return [
        *(Subject("node", node.name, node=node.pk, node_name=node.name) for node in found),
        *(gpu for node in found for gpu in _gpus(node)),
    ]


def _gpus(node: Node) -> Iterator[Subject]:
    hardware = node.hardware
    for device in hardware.accelerators if hardware is not None else []:
        yield Subject(
            f"gpu:{device.index}",
            _("accelerator %(index)s · %(node)s") % {"index": device.index, "node": node.name},
            node=node.pk,
            node_name=node.name,
        )


def _engines(replicas: QuerySet[Replica]) -> Iterator[Subject]:
    live = replicas.filter(ended_at=None).select_related("deployment", "head_node")
    for replica in live.order_by("deployment__name"):
        name = replica.deployment.name
        yield Subject(
            f"launch:{replica.launch}", name, node_name=replica.head_node.name, deployment=name
        )


def _ranks(ranks: QuerySet[Rank], *, with_node: bool) -> Iterator[Subject]:
    """`with_node`: a rank is named by its node, else by its deployment."""
    live = ranks.filter(replica__ended_at=None).select_related("replica__deployment", "node")
    for rank in live.order_by("replica__deployment__name", "rank"):
        deployment = rank.replica.deployment.name
        place = rank.node.name if with_node else deployment
        yield Subject(
            f"launch:{rank.replica.launch}:rank{rank.rank}",
            _("rank %(rank)s · %(place)s") % {"rank": rank.rank, "place": place},
            node_name=rank.node.name,
            deployment=deployment,
            rank=str(rank.rank),
        )
