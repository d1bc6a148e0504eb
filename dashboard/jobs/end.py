"""Steps that end a launch."""

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import heads
from dashboard.choices import NodeStatus, ReplicaStatus
from dashboard.jobs.base import Again, Done, Outcome, slot_worked_on
from dashboard.lifecycle import replicas
from dashboard.models import Job, Node, Replica
from dashboard.sentences import Sentence

DRAIN_SECONDS = 60.0
"""Answers that last longer are cut off, and go on elsewhere."""


class Drain:
    """It is given nothing new; what it has is answered, within bounds."""

    name = "drain"
    title = _("Let it finish its answers")
    seconds = DRAIN_SECONDS + 30.0

    def run(self, job: Job) -> Outcome:
        slot = slot_worked_on(job)
        draining = slot.launches.filter(status=ReplicaStatus.DRAINING).first()
        if draining is None:
            return Done()
        stats = heads.ask_stats(draining)
        left = stats.running + stats.waiting if stats else 0
        if left and timezone.now() - job.created < timedelta(seconds=DRAIN_SECONDS):
            return Again(1.0, Sentence(_("%(count)s answers left"), count=left))
        replicas.retire_drained(slot)
        return Done()

    def overdue(self, job: Job) -> Sentence:
        return Sentence(_("Its answers did not end."))


class Retire:
    """Nodes that are online say when their processes are gone; others end theirs on return."""

    name = "end"
    title = _("End the processes")
    seconds = 60.0

    def run(self, job: Job) -> Outcome:
        for stopping in _stopping(job):
            left = replicas.left_behind(stopping)
            if left and _some_node_is_online(stopping):
                return Again(0.5, Sentence(_("Ending: %(left)s"), left=", ".join(left)))
            replicas.conclude(stopping)
            if left:
                return Done(
                    Sentence(
                        _("Left to end when their node is back: %(left)s"), left=", ".join(left)
                    )
                )
        return Done()

    def overdue(self, job: Job) -> Sentence:
        stopping = _stopping(job).first()
        left = ", ".join(replicas.left_behind(stopping)) if stopping else ""
        return Sentence(
            _("These did not end within %(seconds)s s: %(left)s. Look at the node's agent."),
            seconds=round(self.seconds),
            left=left,
        )


def _stopping(job: Job) -> QuerySet[Replica]:
    """Launches that end, of the job's slot or of the whole deployment."""
    launches = job.slot.launches if job.slot else job.deployment.replicas.all()
    return launches.filter(status=ReplicaStatus.STOPPING)


def _some_node_is_online(replica: Replica) -> bool:
    """Whether anything that is left runs where somebody can report its end."""
    waiting = {rank.node_id for rank in replica.ranks.exclude(status="exited")}
    if replica.head_status != "exited":
        waiting.add(replica.head_node_id)
    return Node.objects.filter(pk__in=waiting, status=NodeStatus.ONLINE).exists()
