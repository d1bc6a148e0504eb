"""Steps that start a launch and see it through to its first token."""

import http.client
import json

import msgspec
from django.utils.translation import gettext_noop as _

from dashboard.choices import LIVE_REPLICA_STATUSES, RankStatus, ReplicaStatus
from dashboard.jobs.base import Again, Done, Outcome, StepFailed
from dashboard.lifecycle import replicas
from dashboard.lifecycle.record import label
from dashboard.models import Job, Rank, Replica
from dashboard.placement import Placement
from dashboard.sentences import Sentence

CANARY_SECONDS = 20.0
LOAD_SECONDS = 300.0


def replica_of(job: Job) -> Replica:
    return Replica.objects.select_related("head_node").get(pk=job.state["replica"])


class Start:
    name = "start"
    title = _("Start the processes")
    seconds = 60.0

    def run(self, job: Job) -> Outcome:
        stopping = job.deployment.replicas.filter(status=ReplicaStatus.STOPPING).first()
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
        if replica.status == ReplicaStatus.READY:
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
    """One token through the whole path: head, every rank, and back."""

    name = "verify"
    title = _("Ask for one token")
    seconds = 60.0

    def run(self, job: Job) -> Outcome:
        replica = replica_of(job)
        if replica.status != ReplicaStatus.READY:
            raise StepFailed(replica.reason or Sentence(_("The launch was ended.")))
        try:
            problem = _ask_for_a_token(replica, job.deployment.name)
        except (OSError, http.client.HTTPException) as error:
            problem = str(error) or type(error).__name__
        if problem:
            return Again(1.0, Sentence(_("No answer yet: %(problem)s"), problem=problem))
        return Done(Sentence(_("It answers.")))

    def overdue(self, job: Job) -> Sentence:
        return Sentence(
            _("The model loaded but did not answer a test request within %(seconds)s s."),
            seconds=round(self.seconds),
        )


def _ask_for_a_token(replica: Replica, model: str) -> str:
    """Empty when it answered, else what it said instead. Raises OSError or HTTPException."""
    body = {"model": model, "prompt": "Hello", "max_tokens": 1, "temperature": 0}
    connection = http.client.HTTPConnection(replica.host, replica.http_port, timeout=CANARY_SECONDS)
    try:
        connection.request(
            "POST",
            "/v1/completions",
            json.dumps(body),
            {"Authorization": f"Bearer {replica.token}", "Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        text = answer.read(4096).decode(errors="replace")
    finally:
        connection.close()
    return "" if answer.status == 200 else f"HTTP {answer.status}: {text[:200]}"
