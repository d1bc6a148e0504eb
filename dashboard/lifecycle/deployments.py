"""Guarded changes of a deployment's status, and what people ask of it."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import (
    DEPLOYMENT_TRANSITIONS,
    LIVE_REPLICA_STATUSES,
    DeploymentStatus,
    EventLevel,
    JobKind,
    ReplicaStatus,
)
from dashboard.errors import StatusConflict
from dashboard.lifecycle import jobs, replicas
from dashboard.lifecycle.record import label, record
from dashboard.models import Deployment, Job
from dashboard.sentences import Sentence


def move(deployment: Deployment, to: DeploymentStatus, **fields: object) -> None:
    """Change the status if nobody has changed it since `deployment` was read.

    Raises StatusConflict when the status does not allow it or exactly one row was not changed.
    """
    old = DeploymentStatus(deployment.status)
    if to not in DEPLOYMENT_TRANSITIONS[old]:
        raise StatusConflict(
            Sentence(
                _("%(name)s is “%(status)s” now, and that does not allow this."),
                name=deployment.name,
                status=label(old.label),
            )
        )
    changes = {"status": to, "changed": timezone.now(), **fields}
    guard = Deployment.objects.filter(
        pk=deployment.pk, status=old, generation=deployment.generation
    )
    if guard.update(**changes) != 1:
        raise StatusConflict(
            Sentence(
                _("Somebody else changed %(name)s at the same moment; look at it again."),
                name=deployment.name,
            )
        )
    for name, value in changes.items():
        setattr(deployment, name, value)
    outbox.announce("deployment", deployment.pk)


def say_why(deployment: Deployment, reason: Sentence) -> None:
    """Set the reason alone."""
    if deployment.reason != reason:
        Deployment.objects.filter(pk=deployment.pk).update(reason=reason)
        deployment.reason = reason
        outbox.announce("deployment", deployment.pk)


@transaction.atomic
def request_deploy(deployment: Deployment, by: object) -> Job:
    """Start it. Raises StatusConflict unless it is stopped or failed."""
    move(
        deployment,
        DeploymentStatus.STARTING,
        wanted=True,
        generation=deployment.generation + 1,
        reason=Sentence(),
        restarts=0,
        ready_at=None,
        down_since=None,
    )
    replicas.retire(deployment)
    record(Sentence(_("Deploy asked for by %(by)s."), by=str(by)), deployment=deployment)
    return jobs.create(deployment, JobKind.DEPLOY, by=str(by))


@transaction.atomic
def request_stop(deployment: Deployment, by: object) -> Job:
    """Stop it. Raises StatusConflict when it is stopped or stopping already."""
    move(
        deployment,
        DeploymentStatus.STOPPING,
        wanted=False,
        generation=deployment.generation + 1,
        reason=Sentence(),
        ready_at=None,
        down_since=None,
    )
    replicas.retire(deployment)
    record(Sentence(_("Stop asked for by %(by)s."), by=str(by)), deployment=deployment)
    return jobs.create(deployment, JobKind.STOP, by=str(by))


@transaction.atomic
def request_restart(
    deployment: Deployment,
    by: object,
    automatic: bool = False,
    reason: Sentence | str = "",
    delay: float = 0.0,
) -> Job:
    """End the running launch and start a new one, `delay` seconds from now.

    Raises StatusConflict when it is stopped, stopping or, for a person, restarting already.
    """
    old = deployment.status
    if not automatic and old in (DeploymentStatus.RESTARTING, DeploymentStatus.STOPPED):
        # Deploy, not restart, is what starts a stopped one.
        raise StatusConflict(
            Sentence(
                _("%(name)s is “%(status)s” now, and that does not allow this."),
                name=deployment.name,
                status=label(DeploymentStatus(old).label),
            )
        )
    reason = Sentence.of(reason)
    move(
        deployment,
        DeploymentStatus.RESTARTING,
        wanted=True,
        generation=deployment.generation + 1,
        reason=reason,
        restarts=deployment.restarts + 1 if automatic else deployment.restarts,
        ready_at=None,
    )
    replicas.retire(deployment)
    if automatic:
        _record_automatic(deployment, delay)
    else:
        record(Sentence(_("Restart asked for by %(by)s."), by=str(by)), deployment=deployment)
    return jobs.create(
        deployment, JobKind.RESTART, by=str(by), automatic=automatic, reason=reason, delay=delay
    )


def _record_automatic(deployment: Deployment, delay: float) -> None:
    now = Sentence(_("Restarting."))
    later = Sentence(_("Restarting in %(seconds)s s."), seconds=round(delay))
    record(later if delay else now, level=EventLevel.WARNING, deployment=deployment)


@transaction.atomic
def become_stopped(deployment: Deployment) -> None:
    """Nothing of it runs any more."""
    move(deployment, DeploymentStatus.STOPPED, reason=Sentence())
    record(Sentence(_("Stopped.")), deployment=deployment)


@transaction.atomic
def delete_deployment(deployment: Deployment, by: object) -> None:
    """Raises StatusConflict while it runs."""
    locked = Deployment.objects.select_for_update(no_key=False).get(pk=deployment.pk)
    live = locked.replicas.filter(
        status__in=[*LIVE_REPLICA_STATUSES, ReplicaStatus.STOPPING]
    ).exists()
    if live or locked.status not in (DeploymentStatus.STOPPED, DeploymentStatus.FAILED):
        raise StatusConflict(
            Sentence(_("%(name)s is still running; stop it first."), name=locked.name)
        )
    outbox.announce("deployment", locked.pk)
    locked.delete()
