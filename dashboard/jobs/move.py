"""Steps that move a deployment off a node, or back to it: first what takes over, then the end."""

from django.db import transaction
from django.utils.translation import gettext_noop as _

from dashboard.choices import ACTIVE_JOB_STATUSES, JobStatus
from dashboard.jobs.base import Again, Done, Outcome, StepFailed
from dashboard.lifecycle import moves
from dashboard.lifecycle.changes import locked
from dashboard.models import Job
from dashboard.sentences import Sentence


class TakeOver:
    name = "take-over"
    title = _("Bring up what takes over")
    seconds = 480.0

    def run(self, job: Job) -> Outcome:
        if "children" not in job.state:
            with transaction.atomic():
                job.state["children"] = moves.begin(locked(job.deployment_id), job.state)
                job.save(update_fields=["state"])
        return _all_done(job, job.state["children"]) or Done()

    def overdue(self, job: Job) -> Sentence:
        return Sentence(_("What was to take over did not become ready in time."))


class Switch:
    name = "switch"
    title = _("Send new requests elsewhere")
    seconds = 60.0

    def run(self, job: Job) -> Outcome:
        if "leaving" not in job.state:
            with transaction.atomic():
                moves.switch(locked(job.deployment_id), job.state)
                job.save(update_fields=["state"])
        return Done()

    def overdue(self, job: Job) -> Sentence:
        return Sentence(_("New requests could not be sent elsewhere in time."))


class Leave:
    name = "leave"
    title = _("Finish the answers there and end")
    seconds = 240.0

    def run(self, job: Job) -> Outcome:
        leaving = Job.objects.filter(pk__in=job.state["leaving"])
        if leaving.filter(status__in=ACTIVE_JOB_STATUSES).exists():
            return Again(0.5)
        with transaction.atomic():
            moves.tidy(locked(job.deployment_id))
        return Done()

    def overdue(self, job: Job) -> Sentence:
        return Sentence(_("What was there did not end in time; look at the node's agent."))


def _all_done(job: Job, children: list[int]) -> Again | None:
    """None once all are. Raises StepFailed with the reason of one that failed."""
    for child in Job.objects.filter(pk__in=children).order_by("pk"):
        if child.status in (JobStatus.FAILED, JobStatus.CANCELLED):
            raise StepFailed(child.reason or Sentence(_("It was ended meanwhile.")))
        if child.status != JobStatus.DONE:
            step = child.steps.filter(status="running").first()
            return Again(0.5, step.detail if step is not None else Sentence())
    return None
