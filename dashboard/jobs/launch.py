"""Steps that start a launch and see it through to its first token."""

import msgspec
from django.db import transaction
from django.utils.translation import gettext_noop as _

from dashboard import heads
from dashboard.choices import (
    ANSWERING_REPLICA_STATUSES,
    LIVE_REPLICA_STATUSES,
    RankStatus,
    ReplicaStatus,
)
from dashboard.jobs.base import Again, Done, Outcome, StepFailed, slot_worked_on
from dashboard.lifecycle import replicas
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.record import label
from dashboard.lifecycle.upturns import become_ready
from dashboard.models import Job, Rank, Replica
from dashboard.placement import Placement
from dashboard.sentences import Sentence

LOAD_SECONDS = 300.0
GATE_TOKENS, GATE_PAUSE = 4, 1.0
"""A launch that takes over from a fallback answers so often, so many seconds apart."""


def replica_of(job: Job) -> Replica:
    return Replica.objects.select_related("head_node").get(pk=job.state["replica"])


class Start:
    name = "start"
    title = _("Start the processes")
    seconds = 60.0

    def run(self, job: Job) -> Outcome:
        slot = slot_worked_on(job)
        stopping = slot.launches.filter(status=ReplicaStatus.STOPPING).first()
        if stopping and "replica" not in job.state:
            left = ", ".join(replicas.left_behind(stopping))
            return Again(0.5, Sentence(_("Still ending from before: %(left)s"), left=left))
        placement = msgspec.convert(job.state["placement"], Placement)
        replica = replicas.start(job, placement)
        return Done(Sentence(_("Launch %(launch)s"), launch=replica.launch))

    def overdue(self, job: Job) -> Sentence:
        return Sentence(_("The processes of the launch before this one do not end."))


class Load:
    name = "load"
    title = _("Load the model")
    seconds = LOAD_SECONDS

    def run(self, job: Job) -> Outcome:
        replica = replica_of(job)
        answers = replica.status in ANSWERING_REPLICA_STATUSES
        if answers or (replica.gated and replicas.all_ready(replica)):
            return Done(Sentence(_("Every rank is ready.")))
        if replica.status not in LIVE_REPLICA_STATUSES:
            raise StepFailed(replica.reason or Sentence(_("The launch was ended.")))
        return Again(0.5, self._progress(replica))

    def overdue(self, job: Job) -> Sentence:
        replica = replica_of(job)
        minutes = round(self.seconds / 60)
        for rank in replica.ranks.select_related("node"):
            if rank.status != RankStatus.READY:
                return Sentence(
                    _(
                        "Rank %(rank)s on %(node)s did not finish loading within %(minutes)s min; "
                        "last seen: %(state)s. Look at its log."
                    ),
                    rank=rank.rank,
                    node=rank.node.name,
                    minutes=minutes,
                    state=_state(rank),
                )
        return Sentence(
            _("The head on %(node)s did not become ready within %(minutes)s min."),
            node=replica.head_node.name,
            minutes=minutes,
        )

    def _progress(self, replica: Replica) -> Sentence:
        said: Sentence | None = None
        for rank in replica.ranks.all():
            one = Sentence(_("rank %(rank)s: %(state)s"), rank=rank.rank, state=_state(rank))
            said = one if said is None else Sentence(_("%(some)s, %(one)s"), some=said, one=one)
        return said or Sentence()


def _state(rank: Rank) -> Sentence:
    status = label(RankStatus(rank.status).label)
    if rank.status == RankStatus.LOADING and rank.progress is not None:
        return Sentence(
            _("%(status)s %(percent)s%%"), status=status, percent=int(rank.progress * 100)
        )
    return status


class Verify:
    """One token through the whole path: head, every rank, and back; of a launch that takes over
    from a fallback a few, before it is given any request."""

    name = "verify"
    title = _("Ask for one token")
    seconds = 60.0

    def run(self, job: Job) -> Outcome:
        replica = replica_of(job)
        if replica.status not in LIVE_REPLICA_STATUSES:
            raise StepFailed(replica.reason or Sentence(_("The launch was ended.")))
        problem = heads.ask_for_a_token(replica, job.deployment.name)
        if problem:
            job.state["tokens"] = 0
            return Again(1.0, Sentence(_("No answer yet: %(problem)s"), problem=problem))
        if not replica.gated or replica.status != ReplicaStatus.STARTING:
            return Done(Sentence(_("It answers.")))
        job.state["tokens"] = job.state.get("tokens", 0) + 1
        if job.state["tokens"] < GATE_TOKENS:
            return Again(
                GATE_PAUSE,
                Sentence(
                    _("%(count)s of %(all)s answers came."),
                    count=job.state["tokens"],
                    all=GATE_TOKENS,
                ),
            )
        _open_gate(replica)
        return Done(Sentence(_("It answers.")))

    def overdue(self, job: Job) -> Sentence:
        return Sentence(
            _("The model loaded but did not answer a test request within %(seconds)s s."),
            seconds=round(self.seconds),
        )


@transaction.atomic
def _open_gate(replica: Replica) -> None:
    become_ready(locked(replica.deployment_id), replica)
