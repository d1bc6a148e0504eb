"""Steps that end a launch."""

from django.utils.translation import gettext_noop as _

from dashboard.choices import NodeStatus, ReplicaStatus
from dashboard.jobs.base import Again, Done, Outcome
from dashboard.lifecycle import replicas
from dashboard.models import Job, Node, Replica
from dashboard.sentences import Sentence


class Retire:
    """Nodes that are online say when their processes are gone; others end theirs on return."""

    name = "end"
    title = _("End the processes")
    seconds = 60.0

    def run(self, job: Job) -> Outcome:
        stopping = job.deployment.replicas.filter(status=ReplicaStatus.STOPPING).first()
        if stopping is None:
            return Done()
        left = replicas.left_behind(stopping)
        if left and _some_node_is_online(stopping):
            return Again(0.5, Sentence(_("Ending: %(left)s"), left=", ".join(left)))
        replicas.conclude(stopping)
        if left:
            return Done(
                Sentence(_("Left to end when their node is back: %(left)s"), left=", ".join(left))
            )
        return Done()

    def overdue(self, job: Job) -> Sentence:
        stopping = job.deployment.replicas.filter(status=ReplicaStatus.STOPPING).first()
        left = ", ".join(replicas.left_behind(stopping)) if stopping else ""
        return Sentence(
            _("These did not end within %(seconds)s s: %(left)s. Look at the node's agent."),
            seconds=round(self.seconds),
            left=left,
        )


def _some_node_is_online(replica: Replica) -> bool:
    """Whether anything that is left runs where somebody can report its end."""
    waiting = {rank.node_id for rank in replica.ranks.exclude(status="exited")}
    if replica.head_status != "exited":
        waiting.add(replica.head_node_id)
    return Node.objects.filter(pk__in=waiting, status=NodeStatus.ONLINE).exists()
