"""A change of settings that failed: what answered before answers again."""

from django.db import transaction
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import (
    EventLevel,
    JobKind,
    JobStatus,
    ReplicaRole,
    ReplicaStatus,
    RevisionState,
)
from dashboard.lifecycle import candidates, jobs, replacing, replicas, revisions
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.jobs import RECONCILE_TASK
from dashboard.lifecycle.record import record
from dashboard.lifecycle.slots import change, settle
from dashboard.models import Deployment, Job, Replica
from dashboard.sentences import Sentence


@transaction.atomic
def undo(job: Job, reason: Sentence) -> None:
    """A change that failed: the settings of before answer, by themselves and at once."""
    deployment = locked(job.deployment_id)
    if deployment.generation != job.generation:
        jobs.end(job, JobStatus.CANCELLED, Sentence(_("A newer request took its place.")))
        return
    if not jobs.end(job, JobStatus.FAILED, reason):
        return
    revision = job.revision
    if revision is None or revision.state == RevisionState.CURRENT:
        settle(deployment)  # It is in use; only the end of the old launches is late.
        return
    revisions.refuse(revision, reason)
    _end_children(job, reason)
    touched = range(job.state.get("at", 0) + 1) if "phase" in job.state else range(0)
    for index in touched:
        _bring_back(deployment, job, index, reason)
    for slot in deployment.slots.filter(role=ReplicaRole.CANDIDATE):
        slot.deployment = deployment
        if slot.launches.filter(status=ReplicaStatus.DRAINING).exists():
            candidates.see_off(slot, replacing.BY)
        else:
            candidates.close(slot)
    record(
        Sentence(
            _("Revision %(number)s was not taken: %(why)s The settings of before are in use."),
            number=revision.number,
            why=reason,
        ),
        level=EventLevel.ERROR,
        deployment=deployment,
    )
    settle(deployment)
    outbox.task(RECONCILE_TASK)


def _end_children(job: Job, reason: Sentence) -> None:
    named = [job.state.get("child"), job.state.get("draining")]
    for child in Job.objects.filter(pk__in=[pk for pk in named if pk]):
        jobs.end(child, JobStatus.CANCELLED, reason)


def _bring_back(deployment: Deployment, job: Job, index: int, reason: Sentence) -> None:
    if candidates.swap_back(deployment, index):
        return
    slot = deployment.slots.filter(role=ReplicaRole.PRIMARY, index=index).first()
    if slot is None:
        return
    slot.deployment = deployment
    is_new = slot.revision_id == job.revision_id
    change(slot, revision=None)
    live = replacing.primary(deployment, index)
    if live is not None and not is_new:
        _keep_on(live)
        return
    replicas.retire(slot)
    jobs.create(
        deployment, JobKind.RESTART, slot=slot, by=replacing.BY, automatic=True, reason=reason
    )


def _keep_on(replica: Replica) -> None:
    """One of before that was about to end answers on."""
    Replica.objects.filter(pk=replica.pk, status=ReplicaStatus.DRAINING).update(
        status=ReplicaStatus.READY
    )
