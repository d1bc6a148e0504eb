"""A launch that begins to answer, pauses to recover in place, and goes on.

The caller holds the deployment's row lock (`changes.locked`).
"""

from datetime import datetime

from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard.choices import EventLevel, ReplicaRole, ReplicaStatus
from dashboard.lifecycle import jobs
from dashboard.lifecycle.record import record
from dashboard.lifecycle.slots import change, settle, slot_of
from dashboard.models import Deployment, Replica, Slot
from dashboard.sentences import Sentence


def launched(deployment: Deployment, replica: Replica) -> None:
    """Head and ranks say that they are ready; a gated launch still has to prove it."""
    if replica.gated:
        jobs.hurry(deployment)
    else:
        become_ready(deployment, replica)


def become_ready(deployment: Deployment, replica: Replica) -> None:
    now = timezone.now()
    guard = Replica.objects.filter(pk=replica.pk, status=ReplicaStatus.STARTING)
    if guard.update(status=ReplicaStatus.READY, ready_at=now) != 1:
        return
    replica.status, replica.ready_at = ReplicaStatus.READY, now
    slot = slot_of(deployment, replica)
    began = slot.down_since or _began(replica)
    sentence = _ready_sentence(slot, again=slot.down_since is not None)
    sentence.params["seconds"] = round((now - began).total_seconds(), 1)
    record(sentence, deployment=deployment, replica=replica)
    change(slot, reason=Sentence(), down_since=None, return_asked=False)
    settle(deployment)
    jobs.hurry(deployment)


def _ready_sentence(slot: Slot, *, again: bool) -> Sentence:
    if slot.is_fallback:
        return Sentence(_("The fallback is ready after %(seconds)s s."))
    if slot.role == ReplicaRole.CANDIDATE:
        return Sentence(_("What is to take over is ready after %(seconds)s s."))
    if slot.deployment.dp > 1:
        return Sentence(_("Replica %(replica)s is ready after %(seconds)s s."), replica=slot.index)
    return Sentence(
        _("Ready again after %(seconds)s s.") if again else _("Ready after %(seconds)s s.")
    )


def _began(replica: Replica) -> datetime:
    job = replica.deployment.jobs.filter(state__replica=replica.pk).first()
    return job.created if job else replica.created


def begin_recovering(
    deployment: Deployment, replica: Replica, why: Sentence, waiting: int = 0
) -> None:
    """Its ranks, or head, are started again in place; `waiting` answers are open."""
    now = timezone.now()
    guard = Replica.objects.filter(pk=replica.pk, status=ReplicaStatus.READY)
    changed = guard.update(
        status=ReplicaStatus.RECOVERING, recovering_since=now, recoveries=F("recoveries") + 1
    )
    if changed != 1:
        return
    replica.status, replica.recovering_since = ReplicaStatus.RECOVERING, now
    change(slot_of(deployment, replica), reason=why, down_since=now)
    sentence = Sentence("%(cause)s", cause=why)
    if waiting:
        sentence = Sentence(_("%(cause)s %(count)s answers wait."), cause=why, count=waiting)
    record(sentence, level=EventLevel.WARNING, deployment=deployment, replica=replica)
    settle(deployment)


def end_recovering(deployment: Deployment, replica: Replica, seconds: float | None = None) -> None:
    """It answers again, `seconds` after the fault where its head has told."""
    guard = Replica.objects.filter(pk=replica.pk, status=ReplicaStatus.RECOVERING)
    if guard.update(status=ReplicaStatus.READY, recovering_since=None) != 1:
        return
    replica.status = ReplicaStatus.READY
    slot = slot_of(deployment, replica)
    now = timezone.now()
    if seconds is None:
        seconds = (now - (slot.down_since or now)).total_seconds()
    sentence = Sentence(_("It goes on after %(seconds)s s."), seconds=round(seconds, 1))
    record(sentence, deployment=deployment, replica=replica)
    change(slot, reason=Sentence(), down_since=None)
    settle(deployment)
