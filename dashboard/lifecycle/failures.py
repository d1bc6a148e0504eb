"""A launch or a job that failed: why, and whether to try again by itself.

The caller holds the deployment's row lock (`changes.locked`).
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard.choices import (
    CRASHES,
    LIVE_REPLICA_STATUSES,
    DeploymentStatus,
    EventLevel,
    Fault,
    JobKind,
    JobStatus,
    ReplicaRole,
    ReplicaStatus,
)
from dashboard.errors import PlacementError
from dashboard.lifecycle import fallbacks, jobs, moves, replacing, replicas, undoing
from dashboard.lifecycle.capacity import find_placement
from dashboard.lifecycle.changes import locked, move
from dashboard.lifecycle.record import record
from dashboard.lifecycle.slots import change, settle, slot_of
from dashboard.models import Deployment, Event, Job, Replica, Slot
from dashboard.sentences import Sentence, sentence_of
from engine.errors import EngineError

CRASHES_UNTIL_GIVING_UP = 5
WINDOW = timedelta(minutes=10)
STEADY = timedelta(seconds=60)
"""A launch that answered for longer than this is no part of a crash loop."""
MOST_DELAY = 60.0
HOLDS = (30.0, 60.0, 120.0)
"""Seconds until the next try of a box that came back and went again."""
ROOT_WINDOW = timedelta(seconds=15)
"""Reports of one death reach us within this; later ones are about something else."""
NOBODY = "Tandem"
"""Who asked, when nobody did."""

FAILED = _("It failed: %(cause)s")
FALLBACK_FAILED = _("The fallback failed: %(cause)s")


class Cause(msgspec.Struct, frozen=True):
    fault: Fault
    sentence: Sentence


def backoff(crashes: int) -> float:
    """Seconds before the restart after so many crashes: at once, then 2, 4, ... at most 60."""
    return 0.0 if crashes <= 1 else min(MOST_DELAY, 2.0 ** (crashes - 1))


def fail_replica(deployment: Deployment, replica: Replica, cause: Cause) -> None:
    """End the launch and, unless that is hopeless, have another one started in its slot."""
    if not replicas.fail(replica, reason=cause.sentence, fault=cause.fault):
        return
    slot = slot_of(deployment, replica)
    record(
        Sentence(FALLBACK_FAILED if slot.is_fallback else FAILED, cause=cause.sentence),
        level=EventLevel.ERROR,
        deployment=deployment,
        replica=replica,
    )
    jobs.end_active(deployment, JobStatus.FAILED, cause.sentence, slot=slot)
    change(slot, reason=cause.sentence, down_since=slot.down_since or timezone.now())
    if not slot.wanted:
        pass
    elif replacing.is_at(deployment, slot):
        jobs.hurry(deployment)
    elif replica.gated and not _steady(replica):
        hold(slot)
    else:
        restart_or_give_up(deployment, slot, cause.sentence)
    settle(deployment)


def _steady(replica: Replica) -> bool:
    ended = replica.ended_at or timezone.now()
    return replica.ready_at is not None and ended - replica.ready_at > STEADY


def hold(slot: Slot) -> None:
    """A return that failed: not again at once, for a box that comes and goes."""
    seconds = HOLDS[min(slot.failed_returns, len(HOLDS) - 1)]
    change(
        slot,
        failed_returns=slot.failed_returns + 1,
        hold_until=timezone.now() + timedelta(seconds=seconds),
        return_asked=False,
    )
    record(
        Sentence(_("It is tried again in %(seconds)s s."), seconds=round(seconds)),
        level=EventLevel.WARNING,
        deployment=slot.deployment,
    )


def explain_better(deployment: Deployment, replica: Replica, cause: Cause) -> None:
    """A later report names the root of a failure that has been acted on already."""
    if Fault(replica.fault).strength >= cause.fault.strength:
        return
    if not replica.ended_at or timezone.now() - replica.ended_at > ROOT_WINDOW:
        return
    changed = Replica.objects.filter(
        pk=replica.pk, status=ReplicaStatus.FAILED, fault=replica.fault
    )
    if changed.update(reason=cause.sentence, fault=cause.fault) != 1:
        return
    packed = Sentence(FAILED, cause=cause.sentence).pack()["params"]
    told = Event.objects.filter(replica=replica, message__in=[FAILED, FALLBACK_FAILED])
    told.update(params=packed)
    Job.objects.filter(deployment=deployment, reason=replica.reason).update(reason=cause.sentence)
    slot = slot_of(deployment, replica)
    if slot.reason == replica.reason:
        change(slot, reason=cause.sentence)
        settle(deployment)
    replica.reason, replica.fault = cause.sentence, cause.fault


def restart_or_give_up(deployment: Deployment, slot: Slot, reason: Sentence) -> None:
    crashes = _recent_crashes(slot)
    if crashes >= CRASHES_UNTIL_GIVING_UP:
        give_up(
            slot,
            Sentence(
                _(
                    "It failed %(count)s times within 10 minutes, so it is no longer restarted. "
                    "Last cause: %(cause)s Look at its log, then press Deploy."
                ),
                count=crashes,
                cause=reason,
            ),
        )
        return
    start_again(slot, reason, backoff(crashes))


def start_again(slot: Slot, reason: Sentence, delay: float = 0.0) -> bool:
    """Queue a restart if the ranks have a place now; False when they have none."""
    deployment = slot.deployment
    try:
        find_placement(slot)
    except PlacementError:
        return False
    except EngineError as error:
        give_up(slot, sentence_of(error))
        return True
    Deployment.objects.filter(pk=deployment.pk).update(restarts=F("restarts") + 1)
    deployment.restarts += 1
    _record_restart(slot, delay)
    gated = not slot.is_fallback and fallbacks.stands_in(deployment) is not None
    jobs.create(
        deployment,
        JobKind.RESTART,
        slot=slot,
        by=NOBODY,
        automatic=True,
        reason=reason,
        delay=delay,
        gated=gated,
    )
    return True


def _record_restart(slot: Slot, delay: float) -> None:
    now = Sentence(_("Restarting."))
    later = Sentence(_("Restarting in %(seconds)s s."), seconds=round(delay))
    record(later if delay else now, level=EventLevel.WARNING, deployment=slot.deployment)


def give_up(slot: Slot, reason: Sentence) -> None:
    """Nothing starts it any more but a person."""
    change(slot, given_up=True, reason=reason, down_since=slot.down_since or timezone.now())
    sentence = Sentence("%(cause)s", cause=reason)
    record(sentence, level=EventLevel.ERROR, deployment=slot.deployment)


def _recent_crashes(slot: Slot) -> int:
    """Launches that ended by themselves before they were of use."""
    since = timezone.now() - WINDOW
    asked = slot.deployment.jobs.filter(automatic=False).order_by("-pk").first()
    short = Q(ready_at=None) | Q(ended_at__lt=F("ready_at") + STEADY)
    return slot.launches.filter(
        short,
        status=ReplicaStatus.FAILED,
        fault__in=CRASHES,
        ended_at__gte=max(since, _created(asked, since)),
    ).count()


def _created(job: Job | None, otherwise: datetime) -> datetime:
    return job.created if job else otherwise


@transaction.atomic
def fail_job(job: Job, reason: Sentence) -> None:
    """A step could not be done or ran out of time: its slot, or the whole stop, fails with it."""
    if job.kind in UNDO:
        UNDO[job.kind](job, reason)
        return
    deployment = locked(job.deployment_id)
    if deployment.generation != job.generation:
        jobs.end(job, JobStatus.CANCELLED, Sentence(_("A newer request took its place.")))
        return
    if not jobs.end(job, JobStatus.FAILED, reason):
        return
    launches = deployment.replicas.all() if job.slot is None else job.slot.launches
    for replica in launches.filter(status__in=LIVE_REPLICA_STATUSES):
        replicas.fail(replica, reason=reason, fault=Fault.DEADLINE)
    for replica in launches.filter(status=ReplicaStatus.STOPPING):
        replicas.conclude(replica)
    if job.slot is None:
        move(deployment, DeploymentStatus.FAILED, reason=reason, ready_at=None)
        record(Sentence("%(cause)s", cause=reason), level=EventLevel.ERROR, deployment=deployment)
        return
    job.slot.deployment = deployment
    if job.slot.role == ReplicaRole.CANDIDATE:
        change(job.slot, reason=reason)
    elif job.state.get("gated"):
        change(job.slot, reason=reason)
        hold(job.slot)
    else:
        give_up(job.slot, reason)
    settle(deployment)


UNDO: dict[str, Callable[[Job, Sentence], None]] = {
    JobKind.MOVE: moves.undo,
    JobKind.CHANGE: undoing.undo,
}
"""Jobs that leave what runs as it was."""
