"""From the name in `model` to the replica that answers."""

from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from dashboard.choices import DeploymentStatus, ReplicaStatus
from dashboard.gateway.errors import ApiError
from dashboard.models import Deployment, Rank, Replica
from dashboard.texts import storable

RETRY_SECONDS = 5
"""How soon it is worth asking again while a deployment is on its way up."""
ON_ITS_WAY = (DeploymentStatus.STARTING, DeploymentStatus.RESTARTING)


@dataclass(frozen=True)
class Target:
    """A ready replica's head: where it listens and the secret it wants to see."""

    route: str
    launch: str
    base_url: str
    token: str = field(repr=False)


def find_deployment(name: str) -> Deployment:
    """404 with the names that exist when there is no such route."""
    rows = Deployment.objects.select_related("model")
    deployment = rows.filter(name=storable(name)).first()
    if deployment is None:
        raise _unknown(name)
    return deployment


def find_target(name: str) -> Target:
    """The newest ready replica of a route; 404 for an unknown one, else 503 with the reason."""
    replica = (
        Replica.objects.filter(deployment__name=storable(name), status=ReplicaStatus.READY)
        .order_by("-pk")
        .first()
    )
    if replica is None:
        raise _not_ready(find_deployment(name))
    return Target(name, replica.launch, replica.base_url, replica.token)


def answering_ranks(launch: str) -> list[dict[str, str | int]]:
    """Which rank runs on which node in a launch, in rank order."""
    ranks = Rank.objects.filter(replica__launch=launch).select_related("node")
    return [{"rank": rank.rank, "node": rank.node.name} for rank in ranks]


def offered() -> list[Deployment]:
    """The routes somebody wants to run, ready or on their way."""
    return list(Deployment.objects.select_related("model").filter(wanted=True))


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


def _not_ready(deployment: Deployment) -> ApiError:
    soon = deployment.status in ON_ITS_WAY
    return ApiError(
        why_not_ready(deployment),
        status=503,
        code="model_not_ready",
        retry_after=RETRY_SECONDS if soon else 60,
    )


def _unknown(name: str) -> ApiError:
    names = ", ".join(row.name for row in offered())
    text = _("There is no model named “%(name)s”.") % {"name": name}
    hint = _("Available: %(names)s.") % {"names": names} if names else _("Nothing is deployed yet.")
    return ApiError(f"{text} {hint}", status=404, code="model_not_found", param="model")
