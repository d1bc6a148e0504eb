"""Runs jobs: start, steps, deadlines, errors, resume. The only one who does."""

import logging

from django.db import OperationalError, connection
from django.utils import timezone

from dashboard.choices import JobKind, JobStatus, StepStatus
from dashboard.errors import TandemError
from dashboard.jobs.base import Again, Step, StepFailed
from dashboard.jobs.kinds import PLANS
from dashboard.lifecycle import deployments, failures, jobs
from dashboard.models import Job, JobStep
from dashboard.sentences import Sentence

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0
"""Before another try after the database failed a job in the middle."""


def run(job_id: int, ticket: int) -> None:
    """Advance the job as far as it goes now. Safe to call twice: a ticket counts once."""
    job = jobs.claim(job_id, ticket)
    if job is None:
        return
    try:
        if _advance(job):
            _finish(job)
    except TandemError as error:
        log.warning("Job %s (%s %s) failed: %s", job.pk, job.kind, job.deployment, error)
        failures.fail_job(job, error.sentence)
    except OperationalError:
        # Else the claim would hold it until its worker counts as lost.
        connection.close_if_unusable_or_obsolete()
        jobs.look_again(job, PAUSE_SECONDS)
        raise


def _advance(job: Job) -> bool:
    """Run steps until one has to wait; True when none is left."""
    steps = PLANS[job.kind].steps
    for step, row in zip(steps, jobs.begin(job, steps), strict=True):
        row.job = job
        if row.status != StepStatus.DONE and not _run_step(job, step, row):
            return False
    return True


def _run_step(job: Job, step: Step, row: JobStep) -> bool:
    jobs.start_step(row, step.seconds)
    outcome = step.run(job)
    if isinstance(outcome, Again):
        jobs.note(row, outcome.detail)
        if row.deadline_at and timezone.now() > row.deadline_at:
            raise StepFailed(step.overdue(job))
        jobs.look_again(job, outcome.seconds)
        return False
    jobs.finish_step(row, outcome.detail)
    return True


def _finish(job: Job) -> None:
    if jobs.end(job, JobStatus.DONE, Sentence()) and job.kind == JobKind.STOP:
        deployments.become_stopped(job.deployment)
