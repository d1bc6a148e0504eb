"""Rows of jobs and their steps. The runner in `dashboard.jobs` does the work."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import (
    ACTIVE_JOB_STATUSES,
    JobKind,
    JobStatus,
    RevisionState,
    StepStatus,
)
from dashboard.lifecycle.tickets import at_work, next_queued, taken
from dashboard.models import Deployment, Job, JobStep, LogLine, Revision, Slot
from dashboard.sentences import Sentence

RUN_TASK = "tandem.run_job"
RECONCILE_TASK = "tandem.reconcile"
OVERDUE_SECONDS = 4.0
"""A job that no worker took this long after `due_at` has lost its message."""
WORK_SECONDS = 30.0
"""A worker that took it and is not done by then is lost."""
MAX_RESUMES = 5


class StepPlan(Protocol):
    """What a step's row says about it."""

    name: str
    title: str
    seconds: float


def create(
    deployment: Deployment,
    kind: JobKind,
    *,
    slot: Slot | None = None,
    by: str = "",
    automatic: bool = False,
    reason: Sentence | str = "",
    delay: float = 0.0,
    gated: bool = False,
) -> Job:
    """Save a job for the deployment's present generation; the slot's older ones end here, or all
    where there is no slot. A `gated` launch has to answer before it is given requests.
    """
    newer = Sentence(_("A newer request took its place."))
    end_active(deployment, JobStatus.CANCELLED, newer, slot=slot)
    job = Job.objects.create(
        deployment=deployment,
        slot=slot,
        state={"gated": True} if gated else {},
        kind=kind,
        generation=deployment.generation,
        by=by,
        automatic=automatic,
        reason=Sentence.of(reason),
    )
    look_again(job, delay)
    return job


def claim(job_id: int, ticket: int) -> Job | None:
    """The job, if this ticket is the one that may advance it now and it is still wanted."""
    now = timezone.now()
    guard = Job.objects.filter(pk=job_id, ticket=ticket, status__in=ACTIVE_JOB_STATUSES)
    if guard.update(ticket=taken(ticket), touched_at=now, due_at=now) != 1:
        return None
    rows = Job.objects.select_related("deployment__model", "slot")
    job = rows.get(pk=job_id)
    if job.slot is not None:
        job.slot.deployment = job.deployment
    if job.generation != job.deployment.generation:
        end(job, JobStatus.CANCELLED, Sentence(_("A newer request took its place.")))
        return None
    return job


def begin(job: Job, steps: Sequence[StepPlan]) -> list[JobStep]:
    """The step rows, made on the first run."""
    if job.status == JobStatus.QUEUED:
        with transaction.atomic():
            Job.objects.filter(pk=job.pk, status=JobStatus.QUEUED).update(
                status=JobStatus.RUNNING, started_at=timezone.now()
            )
            job.status = JobStatus.RUNNING
            JobStep.objects.bulk_create(
                JobStep(job=job, index=index, name=step.name, title=step.title)
                for index, step in enumerate(steps)
            )
            outbox.announce("job", job.pk)
    return list(job.steps.all())


def look_again(job: Job, seconds: float) -> None:
    """Queue the job's next run; whatever else was queued for it is void."""
    job.ticket = next_queued(job.ticket)
    due = timezone.now() + timedelta(seconds=seconds)
    Job.objects.filter(pk=job.pk).update(ticket=job.ticket, due_at=due, state=job.state)
    outbox.task(RUN_TASK, job.pk, job.ticket, countdown=seconds)


def hurry(deployment: Deployment) -> None:
    """Something the deployment's job may be waiting for has happened: run it now."""
    for job in deployment.jobs.filter(status=JobStatus.RUNNING):
        queued = Job.objects.filter(pk=job.pk, ticket=job.ticket)
        if not at_work(job.ticket) and queued.update(ticket=next_queued(job.ticket)) == 1:
            outbox.task(RUN_TASK, job.pk, next_queued(job.ticket))


def start_step(row: JobStep, seconds: float) -> None:
    if row.status == StepStatus.PENDING:
        now = timezone.now()
        row.status, row.started_at = StepStatus.RUNNING, now
        row.deadline_at = now + timedelta(seconds=seconds)
        row.save(update_fields=["status", "started_at", "deadline_at"])
        outbox.announce_progress(row.job.deployment_id)


def note(row: JobStep, detail: Sentence) -> None:
    """Show what the step is at."""
    if detail and row.detail != detail:
        row.detail = detail
        row.save(update_fields=["detail"])
        outbox.announce_progress(row.job.deployment_id)


def finish_step(row: JobStep, detail: Sentence) -> None:
    row.status, row.finished_at = StepStatus.DONE, timezone.now()
    row.detail = detail
    row.save(update_fields=["status", "finished_at", "detail"])
    Job.objects.filter(pk=row.job_id).update(resumes=0, state=row.job.state)
    log(row.job, f"{row.title}: {detail}" if detail else f"{row.title}: done")
    outbox.announce_progress(row.job.deployment_id)


def end(job: Job, status: JobStatus, reason: Sentence) -> bool:
    """Finish, fail or cancel; False when somebody else already did."""
    now = timezone.now()
    guard = Job.objects.filter(pk=job.pk, status__in=ACTIVE_JOB_STATUSES)
    changes = {"status": status, "finished_at": now}
    if reason:
        changes["reason"] = reason
    if guard.update(**changes) != 1:
        return False
    left = StepStatus.FAILED if status == JobStatus.FAILED else StepStatus.SKIPPED
    job.steps.filter(status=StepStatus.RUNNING).update(
        status=left, finished_at=now, **({"detail": reason} if reason else {})
    )
    job.steps.filter(status=StepStatus.PENDING).update(status=StepStatus.SKIPPED)
    job.status = status
    if job.revision_id is not None and status != JobStatus.DONE:
        given_up = Revision.objects.filter(pk=job.revision_id, state=RevisionState.APPLYING)
        given_up.update(state=RevisionState.FAILED, outcome=reason)
    if reason:
        log(job, str(reason))
    outbox.announce("job", job.pk)
    outbox.announce("deployment", job.deployment_id)
    return True


def end_active(
    deployment: Deployment, status: JobStatus, reason: Sentence, slot: Slot | None = None
) -> None:
    """Of one slot, or of the whole deployment."""
    found = deployment.jobs.filter(status__in=ACTIVE_JOB_STATUSES)
    for job in found if slot is None else found.filter(slot=slot):
        end(job, status, reason)


def resume_overdue() -> list[Job]:
    """Queue again the jobs whose message or worker was lost; answers those it gives up."""
    now = timezone.now()
    active = Job.objects.filter(status__in=ACTIVE_JOB_STATUSES)
    unheard = active.filter(due_at__lt=now - timedelta(seconds=OVERDUE_SECONDS))
    long_ago = now - timedelta(seconds=WORK_SECONDS)
    found = [job for job in unheard if not at_work(job.ticket) or (job.due_at or now) < long_ago]
    hopeless = [job for job in found if job.resumes >= MAX_RESUMES]
    for job in found:
        if job not in hopeless:
            _resume(job)
    return hopeless


@transaction.atomic
def _resume(job: Job) -> None:
    guard = Job.objects.filter(pk=job.pk, ticket=job.ticket, status__in=ACTIVE_JOB_STATUSES)
    if guard.update(resumes=F("resumes") + 1) != 1:
        return
    for row in job.steps.filter(status=StepStatus.RUNNING, deadline_at__isnull=False):
        # Time in which no worker was there is not held against the step.
        lost = timezone.now() - (job.touched_at or job.created)
        row.deadline_at = row.deadline_at + lost if row.deadline_at else None
        row.save(update_fields=["deadline_at"])
    log(job, "Picked up again: its worker or its message was lost.")
    look_again(job, 0.0)


def log(job: Job, text: str) -> None:
    LogLine.objects.create(job=job, source="job", text=text)
    outbox.announce_log(job.deployment_id, "job", [text])
