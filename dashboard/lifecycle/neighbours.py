"""Which other nodes a node measures its link to."""

from collections.abc import Iterable

from django.db.models import F, Q, QuerySet

from dashboard import outbox
from dashboard.choices import NodeStatus
from dashboard.models import Node, Replica

MOST_WATCHED = 4
"""Of those with which it shares no work: enough to see the cable, however large the fleet."""


def watched_by(node: Node, replicas: Iterable[Replica]) -> list[str]:
    """The addresses of the nodes that work with it on its live replicas; while there are none, of
    the first few of the fleet. On the cable where both have one."""
    work = [replica.pk for replica in replicas]
    others = _real().exclude(pk=node.pk).filter(connected_at__isnull=False).order_by("name")
    with_it = others.filter(Q(ranks__replica__in=work) | Q(heads__in=work)).distinct()
    chosen = list(with_it) if work else []
    return [_address(node, other) for other in chosen or others[:MOST_WATCHED]]


def tell_neighbours(node: Node) -> None:
    """The node came, went or has another address; call it within the transaction."""
    others = _real().exclude(pk=node.pk).filter(status=NodeStatus.ONLINE)
    for pk in others.values_list("pk", flat=True):
        Node.objects.filter(pk=pk).update(desired_generation=F("desired_generation") + 1)
        outbox.nudge(pk)


def _real() -> QuerySet[Node]:
    """A simulated box has no cable, and many of them must not make work for each other."""
    return Node.objects.exclude(inventory__simulated=True)


def _address(node: Node, other: Node) -> str:
    return other.link_address if node.link_address and other.link_address else other.engine_address
