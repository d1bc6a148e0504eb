"""Rows with what runs on them now, in a fixed number of queries."""

from django.db.models import Prefetch, QuerySet

from dashboard.models import Deployment, Rank, Replica


def live_ranks() -> "Prefetch[str, QuerySet[Rank], str]":
    """For nodes: `node.live_ranks`, the ranks of launches that have not ended."""
    ranks = Rank.objects.filter(replica__ended_at=None).select_related("replica__deployment")
    return Prefetch("ranks", ranks.order_by("replica__deployment__name", "rank"), "live_ranks")


def with_live_replica(deployments: QuerySet[Deployment]) -> QuerySet[Deployment]:
    """`deployment.live_replicas`: at most one, with its ranks and their nodes."""
    replicas = Replica.objects.filter(ended_at=None).prefetch_related("ranks__node")
    return deployments.select_related("model").prefetch_related(
        Prefetch("replicas", replicas, "live_replicas")
    )
