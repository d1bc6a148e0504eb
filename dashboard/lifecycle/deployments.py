"""What people ask of a deployment."""

from django.db import transaction
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import (
    LIVE_REPLICA_STATUSES,
    DeploymentStatus,
    JobKind,
    ReplicaRole,
    ReplicaStatus,
)
from dashboard.errors import StatusConflict
from dashboard.lifecycle import jobs, replicas
from dashboard.lifecycle.changes import locked, move, refused
from dashboard.lifecycle.failures import start_again
from dashboard.lifecycle.record import record
from dashboard.lifecycle.slots import change, lay_out, live_launches, settle
from dashboard.models import Deployment, Job, Slot
from dashboard.sentences import Sentence


@transaction.atomic
def request_deploy(deployment: Deployment, by: object) -> Job:
    """Start it. Raises StatusConflict unless it is stopped or failed."""
    if deployment.status not in (DeploymentStatus.STOPPED, DeploymentStatus.FAILED):
        raise refused(deployment)
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
    replicas.retire_all(deployment)
    record(Sentence(_("Deploy asked for by %(by)s."), by=str(by)), deployment=deployment)
    return _start_all(deployment, lay_out(deployment), JobKind.DEPLOY, by)


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
    replicas.retire_all(deployment)
    record(Sentence(_("Stop asked for by %(by)s."), by=str(by)), deployment=deployment)
    return jobs.create(deployment, JobKind.STOP, by=str(by))


@transaction.atomic
def request_restart(deployment: Deployment, by: object) -> Job:
    """End the primaries' launches and start new ones; a fallback that runs always goes on.

    Raises StatusConflict when it is stopped, stopping or restarting already.
    """
    if deployment.status in (DeploymentStatus.RESTARTING, DeploymentStatus.STOPPED):
        # Deploy, not restart, is what starts a stopped one.
        raise refused(deployment)
    move(
        deployment,
        DeploymentStatus.RESTARTING,
        wanted=True,
        generation=deployment.generation + 1,
        reason=Sentence(),
        ready_at=None,
    )
    record(Sentence(_("Restart asked for by %(by)s."), by=str(by)), deployment=deployment)
    again = [slot for slot in lay_out(deployment) if not _keeps_on(slot)]
    for slot in deployment.slots.all():
        if slot in again or not slot.wanted:
            replicas.retire(slot)
    return _start_all(deployment, again, JobKind.RESTART, by)


def _keeps_on(slot: Slot) -> bool:
    return slot.is_fallback and slot.launches.filter(status=ReplicaStatus.READY).exists()


def _start_all(deployment: Deployment, slots: list[Slot], kind: JobKind, by: object) -> Job:
    """One job a slot; the first one's answers for all."""
    started = [jobs.create(deployment, kind, slot=slot, by=str(by)) for slot in slots]
    return started[0]


@transaction.atomic
def request_return(deployment: Deployment, by: object) -> None:
    """Have the primaries take over again from the fallback, now.

    Raises StatusConflict when nothing is to return, or the reason why it cannot run yet.
    """
    deployment = locked(deployment.pk)
    if not deployment.wanted:
        raise refused(deployment)
    live = live_launches(deployment)
    primaries = deployment.slots.filter(role=ReplicaRole.PRIMARY)
    absent = [slot for slot in primaries if (slot.role, slot.index) not in live]
    if not absent:
        raise refused(deployment)
    record(Sentence(_("Return asked for by %(by)s."), by=str(by)), deployment=deployment)
    for slot in absent:
        slot.deployment = deployment
        change(slot, given_up=False, hold_until=None, return_asked=True)
        if not start_again(slot, slot.reason):
            raise StatusConflict(Sentence(_("It cannot run yet: %(reason)s"), reason=slot.reason))
    settle(deployment)


@transaction.atomic
def become_stopped(deployment: Deployment) -> None:
    """Nothing of it runs any more."""
    move(deployment, DeploymentStatus.STOPPED, reason=Sentence())
    record(Sentence(_("Stopped.")), deployment=deployment)


@transaction.atomic
def delete_deployment(deployment: Deployment, by: object) -> None:
    """Raises StatusConflict while it runs."""
    row = Deployment.objects.select_for_update(no_key=False).get(pk=deployment.pk)
    living = [*LIVE_REPLICA_STATUSES, ReplicaStatus.STOPPING]
    live = row.replicas.filter(status__in=living).exists()
    if live or row.status not in (DeploymentStatus.STOPPED, DeploymentStatus.FAILED):
        raise StatusConflict(
            Sentence(_("%(name)s is still running; stop it first."), name=row.name)
        )
    outbox.announce("deployment", row.pk)
    row.delete()
