"""Steps that bring a revision into use: replica by replica, each proved before it counts.

`state["at"]` is the replica at work, `state["phase"]` what is done to it; every phase finds out
from the rows what has been done already, so that it may be run again after a worker died in it.
"""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import canary
from dashboard.canary import CanaryError, Measured
from dashboard.choices import ACTIVE_JOB_STATUSES, JobStatus, ReplicaStatus
from dashboard.jobs.base import Again, Done, Outcome, StepFailed
from dashboard.jobs.prepare import check_file
from dashboard.lifecycle import replacing
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.preview import IN_PLACE, LIVE
from dashboard.models import Job, Revision
from dashboard.sentences import Sentence

WATCH_SECONDS = 8.0
"""For which the new launch answers people while the old one stands by."""

LIVE_TRIES = 60
"""Seconds for which heads that do not take a live setting are asked again."""


def revision_of(job: Job) -> Revision:
    assert job.revision is not None
    return job.revision


class Compare:
    """What the present launches are like, for the new ones to be held against."""

    name = "compare"
    title = _("Measure what answers now")
    seconds = 120.0

    def run(self, job: Job) -> Outcome:
        if job.state["way"] == LIVE or "before" in job.state:
            return Done()
        # Before anything ends that still answers: it could not be started again either.
        check_file(replacing.model_of(revision_of(job)))
        job.state["before"] = None
        for replica in replacing.primaries(job.deployment):
            if replica.status == ReplicaStatus.READY:
                try:
                    measured = canary.measure(replica, job.deployment.name)
                except CanaryError as error:
                    words = _("What answers now is no measure (%(why)s).")
                    return Done(Sentence(words, why=str(error)))
                job.state["before"] = [measured.nats, measured.first_token, measured.per_token]
                return Done(_said(measured))
        return Done(Sentence(_("Nothing answers now, so there is nothing to compare with.")))

    def overdue(self, job: Job) -> Sentence:
        return Sentence(_("What answers now could not be measured in time."))


class Replace:
    name = "replace"
    title = _("Replace the launches")
    seconds = 1800.0

    def run(self, job: Job) -> Outcome:
        if job.state["way"] == LIVE:
            return self._live(job)
        state = job.state
        state.setdefault("at", 0)
        state.setdefault("phase", "make-room" if state["way"] == IN_PLACE else "bring-up")
        if gone := replacing.lost(job.deployment, revision_of(job)):
            raise StepFailed(gone)
        if state["at"] >= replacing.count(job.deployment, revision_of(job)):
            return Done()
        outcome = getattr(self, PHASES[state["phase"]])(job)
        return outcome if isinstance(outcome, Again) else Again(0.2)

    def _live(self, job: Job) -> Outcome:
        revision = revision_of(job)
        problem = replacing.set_live(job.deployment, revision)
        if not problem:
            return Done(Sentence(_("The engines took it while they run.")))
        said = Sentence(_("A head does not take it yet: %(why)s"), why=problem)
        job.state["tries"] = job.state.get("tries", 0) + 1
        if job.state["tries"] < LIVE_TRIES:
            return Again(1.0, said)
        if revision.replaces is not None:  # Those that took it go back, as far as they answer.
            replacing.set_live(job.deployment, revision.replaces)
        raise StepFailed(said)

    def _make_room(self, job: Job) -> Again | None:
        """In place: the fallback answers, or requests wait, while the old launch ends."""
        with transaction.atomic():
            deployment = locked(job.deployment_id)
            waiting = replacing.make_room(deployment, revision_of(job), job.state)
            job.save(update_fields=["state"])
        return waiting if waiting is None else Again(0.5, waiting)

    def _bring_up(self, job: Job) -> Again | None:
        if "child" not in job.state:
            with transaction.atomic():
                deployment = locked(job.deployment_id)
                room = replacing.room_beside(deployment, revision_of(job), job.state)
                job.save(update_fields=["state"])
                if not room:
                    return Again(0.5, Sentence(_("It ends.")))
                child = replacing.bring_up(deployment, revision_of(job), job.state["at"])
                job.state["child"] = child.pk
                job.save(update_fields=["state"])
        child = Job.objects.get(pk=job.state["child"])
        if child.status in (JobStatus.FAILED, JobStatus.CANCELLED):
            raise StepFailed(child.reason or Sentence(_("It was ended meanwhile.")))
        if child.status in ACTIVE_JOB_STATUSES:
            step = child.steps.filter(status="running").first()
            return Again(0.5, step.detail if step is not None else Sentence())
        job.state["phase"] = "prove"
        return None

    def _prove(self, job: Job) -> Again | None:
        replica = replacing.candidate(job.deployment, job.state["at"])
        if replica is None or replica.status != ReplicaStatus.READY:
            raise StepFailed(replacing.ended(replica))
        before = job.state.get("before")
        old = None
        if before:
            old = Measured(nats=before[0], first_token=before[1], per_token=before[2])
        try:
            new = canary.measure(replica, job.deployment.name)
        except CanaryError as error:
            problem: Sentence | None = Sentence(
                _("It does not answer as it should: %(why)s"), why=str(error)
            )
        else:
            problem = replacing.verdict(new, old, revision_of(job))
        if problem is None:
            job.state["phase"], job.state["tries"] = "switch", 0
            return None
        job.state["tries"] = job.state.get("tries", 0) + 1
        if job.state["tries"] >= canary.TRIES:
            raise StepFailed(problem)
        return Again(1.0, problem)

    def _switch(self, job: Job) -> Again | None:
        with transaction.atomic():
            replacing.switch(locked(job.deployment_id), job.state["at"])
            job.state["phase"] = "watch"
            job.state["since"] = timezone.now().timestamp()
            job.save(update_fields=["state"])
        return None

    def _watch(self, job: Job) -> Again | None:
        replica = replacing.primary(job.deployment, job.state["at"])
        if replica is None or replica.status != ReplicaStatus.READY:
            raise StepFailed(replacing.ended(replica))
        if problem := replacing.trouble(replica):
            raise StepFailed(problem)
        left = WATCH_SECONDS - (timezone.now().timestamp() - job.state["since"])
        if left > 0:
            return Again(
                min(1.0, left), Sentence(_("It answers; watched for %(left)s s."), left=round(left))
            )
        job.state["at"] += 1
        job.state.pop("child", None)
        job.state["phase"] = "make-room" if job.state["way"] == IN_PLACE else "bring-up"
        return None

    def overdue(self, job: Job) -> Sentence:
        return Sentence(_("The launches could not be replaced in time."))


PHASES = {
    "make-room": "_make_room",
    "bring-up": "_bring_up",
    "prove": "_prove",
    "switch": "_switch",
    "watch": "_watch",
}


class Take:
    """From here on the revision is the one in use: a crash starts its settings again."""

    name = "take"
    title = _("Keep the new settings")
    seconds = 30.0

    def run(self, job: Job) -> Outcome:
        with transaction.atomic():
            replacing.take(locked(job.deployment_id), revision_of(job))
        return Done()

    def overdue(self, job: Job) -> Sentence:
        return Sentence(_("The settings could not be kept in time."))


class SeeOff:
    name = "see-off"
    title = _("Finish the answers of the old launches and end them")
    seconds = 300.0

    def run(self, job: Job) -> Outcome:
        with transaction.atomic():
            left = replacing.see_off(locked(job.deployment_id), job.state)
            job.save(update_fields=["state"])
        if left:
            return Again(0.5, Sentence(_("%(count)s to end"), count=left))
        return Done()

    def overdue(self, job: Job) -> Sentence:
        return Sentence(_("The old launches did not end in time; look at the nodes' agents."))


def _said(measured: Measured) -> Sentence:
    return Sentence(
        _("%(nats)s nats a token; %(first)s s to the first token, %(each)s s for each after it"),
        nats=round(measured.nats, 2),
        first=round(measured.first_token, 2),
        each=round(measured.per_token, 3),
    )
