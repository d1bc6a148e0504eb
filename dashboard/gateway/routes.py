"""From the name in `model` to the replicas that can answer."""

from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from dashboard.choices import (
    ANSWERING_REPLICA_STATUSES,
    DeploymentStatus,
    ReplicaRole,
    ReplicaStatus,
)
from dashboard.gateway.errors import ApiError
from dashboard.gateway.patience import patiently
from dashboard.models import Deployment, Rank, Replica
from dashboard.texts import storable

RETRY_SECONDS = 5
"""How soon it is worth asking again while a deployment is on its way up."""
ON_ITS_WAY = (
    DeploymentStatus.STARTING,
    DeploymentStatus.RESTARTING,
    DeploymentStatus.RECOVERING,
)
OVER = (DeploymentStatus.STOPPED, DeploymentStatus.STOPPING, DeploymentStatus.FAILED)


@dataclass(frozen=True)
class Target:
    """An answering replica's head: where it listens and the secret it wants to see."""

    route: str
    launch: str
    base_url: str
    token: str = field(repr=False)
    role: str = ReplicaRole.PRIMARY
    index: int = 0
    status: str = ReplicaStatus.READY
    model: str = ""
    """Name of what it serves."""

    @property
    def ready(self) -> bool:
        return self.status == ReplicaStatus.READY

    @property
    def order(self) -> tuple[bool, bool, int]:
        """The smallest is asked first: a ready primary, a ready fallback, what recovers."""
        return (not self.ready, self.role != ReplicaRole.PRIMARY, self.index)


class NotReady(ApiError):
    """No replica answers; `soon` when one may before long."""

    soon = False


def find_deployment(name: str, hidden: frozenset[str] | None = None) -> Deployment:
    """404 with the names that exist when there is no such route, or it is hidden."""
    rows = Deployment.objects.select_related("model")
    deployment = rows.filter(name=storable(name)).first()
    if deployment is None or name in (hidden or ()):
        raise _unknown(name, hidden)
    return deployment


async def check_route(name: str, hidden: frozenset[str]) -> None:
    """404, as if it were not there, for one that is hidden from who asks."""
    if name in hidden:
        raise await patiently(_unknown, name, hidden)


def find_targets(name: str) -> list[Target]:
    """The answering replicas of a route, in the order to ask them; the newest of each place only.

    404 for an unknown route; NotReady with the reason when none answers.
    """
    replicas = (
        Replica.objects.filter(
            deployment__name=storable(name),
            status__in=ANSWERING_REPLICA_STATUSES,
            role__in=[ReplicaRole.PRIMARY, ReplicaRole.FALLBACK],
        )
        .select_related("model", "deployment__model")
        .order_by("-pk")
    )
    places: dict[tuple[str, int], Target] = {}
    for replica in replicas:
        places.setdefault((replica.role, replica.index), _target(name, replica))
    if not places:
        raise _not_ready(find_deployment(name))
    return sorted(places.values(), key=lambda target: target.order)


def find_launch(launch: str) -> Target | None:
    """The head of a launch that still answers, for one who knows no route."""
    replica = (
        Replica.objects.filter(launch=storable(launch))
        .select_related("model", "deployment__model")
        .first()
    )
    return None if replica is None else _target(replica.deployment.name, replica)


def _target(name: str, replica: Replica) -> Target:
    return Target(
        route=name,
        launch=replica.launch,
        base_url=replica.base_url,
        token=replica.token,
        role=replica.role,
        index=replica.index,
        status=replica.status,
        model=(replica.model or replica.deployment.model).name,
    )


def answering_ranks(launch: str) -> list[dict[str, str | int]]:
    """Which rank runs on which node in a launch, in rank order."""
    ranks = Rank.objects.filter(replica__launch=launch).select_related("node")
    return [{"rank": rank.rank, "node": rank.node.name} for rank in ranks]


def offered(hidden: frozenset[str] | None = None) -> list[Deployment]:
    """The routes somebody wants to run, ready or on their way, but for those that are hidden; for
    nobody in particular, those of no team."""
    rows = Deployment.objects.select_related("model").filter(wanted=True)
    return list(rows.filter(teams=None) if hidden is None else rows.exclude(name__in=hidden))


def loading_progress(deployment: Deployment) -> float | None:
    """0..1 over the ranks of the launch that is coming up; None when nothing loads."""
    replica = deployment.live_replica
    if replica is None or replica.status != ReplicaStatus.STARTING:
        return None
    ranks = list(replica.ranks.all())
    known = [rank.progress for rank in ranks if rank.progress is not None]
    return sum(known) / len(ranks) if known else None


def why_not_ready(deployment: Deployment) -> str:
    """One sentence: the route's status, how far it is, and its own reason."""
    text = _("%(name)s is not ready: %(status)s.") % {
        "name": deployment.name,
        "status": deployment.get_status_display().lower(),
    }
    if (progress := loading_progress(deployment)) is not None:
        text += " " + _("%(percent)s%% of it is loaded.") % {"percent": round(progress * 100)}
    return f"{text} {deployment.reason}".rstrip()


def _not_ready(deployment: Deployment) -> NotReady:
    retry = RETRY_SECONDS if deployment.status in ON_ITS_WAY else 60
    error = NotReady(
        why_not_ready(deployment), status=503, code="model_not_ready", retry_after=retry
    )
    error.soon = deployment.wanted and deployment.status not in OVER
    return error


def _unknown(name: str, hidden: frozenset[str] | None = None) -> ApiError:
    names = ", ".join(row.name for row in offered(hidden))
    text = _("There is no model named “%(name)s”.") % {"name": name}
    hint = _("Available: %(names)s.") % {"names": names} if names else _("Nothing is deployed yet.")
    return ApiError(f"{text} {hint}", status=404, code="model_not_found", param="model")
