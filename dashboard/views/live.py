"""Rows with what runs on them now, in a fixed number of queries."""

from django.db.models import Case, Prefetch, QuerySet, Value, When
from django.utils.translation import gettext as _

from dashboard.choices import ReplicaRole
from dashboard.models import Deployment, Rank, Replica
from monitoring.scopes import NOTHING, Hidden

SHOWN = (
    ReplicaRole.PRIMARY,
    ReplicaRole.RETIRING,
    ReplicaRole.CANDIDATE,
    ReplicaRole.FALLBACK,
)
PRIMARIES_FIRST = (
    Case(*(When(role=role, then=Value(place)) for place, role in enumerate(SHOWN))),
    "index",
)


def live_ranks(hidden: Hidden = NOTHING) -> "Prefetch[str, QuerySet[Rank], str]":
    """For nodes: `node.live_ranks`, the ranks of launches that have not ended."""
    ranks = Rank.objects.filter(replica__ended_at=None).select_related("replica__deployment")
    ranks = ranks.exclude(replica__deployment__in=hidden.deployments)
    return Prefetch("ranks", ranks.order_by("replica__deployment__name", "rank"), "live_ranks")


def with_live_replica(deployments: QuerySet[Deployment]) -> QuerySet[Deployment]:
    """`deployment.live_replicas`, primaries first, with their ranks and their nodes."""
    living = Replica.objects.filter(ended_at=None).order_by(*PRIMARIES_FIRST)
    replicas = living.prefetch_related("ranks__node")
    return deployments.select_related("model").prefetch_related(
        Prefetch("replicas", replicas, "live_replicas")
    )


def replica_name(replica: Replica) -> str:
    """How a page tells it from its siblings."""
    if replica.role == ReplicaRole.FALLBACK:
        return str(ReplicaRole.FALLBACK.label)
    name = _("Replica %(number)s") % {"number": replica.index + 1}
    if replica.role == ReplicaRole.PRIMARY:
        return name
    return f"{name} · {ReplicaRole(replica.role).label}"
