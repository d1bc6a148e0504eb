"""Steps before anything is started: the file, the plan, the place."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path

import msgspec
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard.choices import ACTIVE_JOB_STATUSES, JobKind, NodeStatus
from dashboard.errors import PlacementError
from dashboard.jobs.base import Again, Done, Outcome, StepFailed, slot_worked_on
from dashboard.lifecycle.capacity import find_placement
from dashboard.models import Job, Model, Node
from dashboard.placement import Placement, gigabytes
from dashboard.sentences import Sentence, sentence_of
from engine.checkpoint import open_checkpoint
from engine.errors import EngineError
from engine.shards import RankShare, rank_shares

GATHERING = timedelta(seconds=8)
"""After the first node came back, the others are given this long before ranks are placed."""


def check_file(model: Model) -> None:
    """Raises StepFailed where it cannot be loaded, or is another one than was imported."""
    try:
        checkpoint = open_checkpoint(Path(model.path))
        checkpoint.tokenizer  # noqa: B018 - reading it is the check
    except EngineError as error:
        raise StepFailed(sentence_of(error)) from error
    if checkpoint.size_bytes != model.size_bytes or checkpoint.config != model.shape:
        words = _("The file of %(model)s is not the one that was imported; import it again.")
        raise StepFailed(Sentence(words, model=model.name))


class CheckFile:
    name = "check"
    title = _("Check the model file")
    seconds = 60.0

    def run(self, job: Job) -> Outcome:
        model = slot_worked_on(job).served_model
        check_file(model)
        return Done(Sentence(_("%(size)s, unchanged"), size=gigabytes(model.size_bytes)))

    def overdue(self, job: Job) -> Sentence:
        return Sentence(_("The model file could not be read in time; look at its disk."))


class CheckPlan:
    name = "plan"
    title = _("Plan the split")
    seconds = 30.0

    def run(self, job: Job) -> Outcome:
        try:
            slot = slot_worked_on(job)
            config = slot.engine_config
            shape = slot.served_model.shape
            shares = rank_shares(shape, config.plan)
        except EngineError as error:
            raise StepFailed(sentence_of(error)) from error
        return Done(_split(shares, config.plan.width, latent=shape.latent is not None))

    def overdue(self, job: Job) -> Sentence:
        return Sentence(_("The plan took too long."))


def _split(shares: Sequence[RankShare], width: int, *, latent: bool) -> Sentence:
    """Where one latent serves all heads, every rank holds it and the query heads are dealt out."""
    first = shares[:width]
    words = (
        _("%(ranks)s ranks; heads %(heads)s, one latent; layers %(layers)s")
        if latent
        else _("%(ranks)s ranks; KV heads %(heads)s; layers %(layers)s")
    )
    return Sentence(
        words,
        ranks=len(shares),
        heads=" + ".join(str((s.heads if latent else s.kv_heads).size) for s in first),
        layers=" + ".join(str(share.layers.size) for share in shares[::width]),
    )


class Place:
    name = "place"
    title = _("Find a place for every rank")
    seconds = 60.0

    def run(self, job: Job) -> Outcome:
        if "replica" in job.state:
            return Done()
        if _another_goes_first(job):
            return Again(0.3, Sentence(_("Its other replicas are placed first.")))
        nodes = {node.pk: node for node in Node.objects.all()}
        away = [n for n in nodes.values() if n.schedulable and n.status != NodeStatus.ONLINE]
        try:
            placement = find_placement(slot_worked_on(job))
        except PlacementError as error:
            if away:
                return Again(0.5, error.sentence)
            raise StepFailed(error.sentence) from error
        except EngineError as error:
            raise StepFailed(sentence_of(error)) from error
        if away and _gathering(nodes.values(), placement):
            names = ", ".join(node.name for node in away)
            return Again(0.5, Sentence(_("Waiting a moment for %(nodes)s."), nodes=names))
        job.state["placement"] = msgspec.to_builtins(placement)
        return Done(_describe(placement, nodes))

    def overdue(self, job: Job) -> Sentence:
        try:
            find_placement(slot_worked_on(job))
        except PlacementError as error:
            return error.sentence
        return Sentence(_("No place was found in time."))


def _another_goes_first(job: Job) -> bool:
    """Primaries are placed before the fallback, each knowing of those before it; for a while."""
    if timezone.now() - job.created > GATHERING:
        return False
    before = job.deployment.jobs.filter(
        status__in=ACTIVE_JOB_STATUSES,
        kind__in=[JobKind.DEPLOY, JobKind.RESTART],
        due_at__lte=timezone.now() + timedelta(seconds=1),
        pk__lt=job.pk,
    )
    return any("replica" not in other.state for other in before)


def _gathering(nodes: Iterable[Node], placement: Placement) -> bool:
    """Whether the fleet has only just begun to come online, so more nodes are likely to follow."""
    if len(set(placement.ranks)) == len(placement.ranks):
        return False
    since = [n.connected_at for n in nodes if n.status == NodeStatus.ONLINE and n.connected_at]
    return bool(since) and timezone.now() - min(since) < GATHERING


def _describe(placement: Placement, nodes: dict[int, Node]) -> Sentence:
    used = set(placement.ranks)
    parts = ", ".join(
        f"{rank} → {nodes[pk].name} ({gigabytes(need)})"
        for rank, (pk, need) in enumerate(
            zip(placement.ranks, placement.bytes_per_rank, strict=True)
        )
    )
    if len(used) == 1 and len(placement.ranks) > 1:
        return Sentence(_("Every rank on one node: %(ranks)s"), ranks=parts)
    return Sentence(_("Ranks: %(ranks)s"), ranks=parts)
