"""The fallback that is started when it is needed: called in, and sent home again."""

from collections.abc import Sequence

from django.utils.translation import gettext_noop as _

from dashboard.choices import (
    ACTIVE_JOB_STATUSES,
    ANSWERING_REPLICA_STATUSES,
    LIVE_REPLICA_STATUSES,
    EventLevel,
    FallbackMode,
    JobKind,
    JobStatus,
    ReplicaRole,
    ReplicaStatus,
)
from dashboard.lifecycle import jobs, replicas
from dashboard.lifecycle.record import record
from dashboard.lifecycle.standing import SlotState, may_stand_down, needs_fallback
from dashboard.models import Deployment, Fallback, Replica, Slot
from dashboard.sentences import Sentence

NOBODY = "Tandem"
"""Who asked, when nobody did."""


def follow(deployment: Deployment, slots: Sequence[Slot], states: Sequence[SlotState]) -> bool:
    """Do what the states ask for; whether anything was done. The caller holds the row lock."""
    slot = next((slot for slot in slots if slot.is_fallback), None)
    fallback = deployment.fallback_or_none
    if slot is None or fallback is None or fallback.mode != FallbackMode.COLD:
        return False
    if not slot.wanted and needs_fallback(states):
        _call_in(deployment, slot, slots)
        return True
    if slot.wanted and may_stand_down(states) and not _is_to_stand_in(deployment):
        _send_home(deployment, slot)
        return True
    return False


def _is_to_stand_in(deployment: Deployment) -> bool:
    """A primary is about to leave, and the fallback comes before that."""
    active = deployment.jobs.filter(status__in=ACTIVE_JOB_STATUSES)
    return active.filter(kind__in=[JobKind.MOVE, JobKind.CHANGE]).exists()


def stands_in(deployment: Deployment) -> Fallback | None:
    """The fallback, if it answers now."""
    fallback = deployment.fallback_or_none
    answers = deployment.replicas.filter(role="fallback", status=ReplicaStatus.READY).exists()
    return fallback if answers else None


def stand_in(deployment: Deployment, cause: Sentence, leaving: int | None = None) -> list[int]:
    """Have the fallback answer before a primary leaves, not on the node that is left; answers the
    jobs that bring it up. `settle` sends it home once it is not needed."""
    slot = deployment.slots.get(role=ReplicaRole.FALLBACK)
    slot.deployment = deployment
    live = slot.launches.filter(status__in=LIVE_REPLICA_STATUSES).first()
    if live is not None and leaving not in replicas.nodes_of(live):
        if live.status in ANSWERING_REPLICA_STATUSES:
            return []
        return list(slot.jobs.filter(status__in=ACTIVE_JOB_STATUSES).values_list("pk", flat=True))
    slot.wanted, slot.given_up, slot.reason = True, False, Sentence()
    slot.save(update_fields=["wanted", "given_up", "reason"])
    if live is not None:
        replicas.retire(slot)
    record(
        Sentence(_("The fallback is called in: %(cause)s"), cause=cause),
        level=EventLevel.WARNING,
        deployment=deployment,
    )
    restart = jobs.create(deployment, JobKind.RESTART, slot=slot, by=NOBODY, automatic=True)
    return [restart.pk]


def _call_in(deployment: Deployment, slot: Slot, slots: Sequence[Slot]) -> None:
    slot.wanted, slot.given_up, slot.reason = True, False, Sentence()
    slot.save(update_fields=["wanted", "given_up", "reason"])
    cause = next((other.reason for other in slots if other.reason), Sentence())
    record(
        Sentence(_("The fallback is called in: %(cause)s"), cause=cause),
        level=EventLevel.WARNING,
        deployment=deployment,
    )
    if _keep_on(slot):
        jobs.end_active(deployment, JobStatus.CANCELLED, Sentence(_("It is needed.")), slot=slot)
    else:
        jobs.create(deployment, JobKind.DEPLOY, slot=slot, automatic=True, reason=cause)


def _keep_on(slot: Slot) -> bool:
    """One that is still finishing its answers takes new ones again."""
    draining = slot.launches.filter(status=ReplicaStatus.DRAINING)
    return draining.update(status=ReplicaStatus.READY) == 1


def _send_home(deployment: Deployment, slot: Slot) -> None:
    slot.wanted = False
    slot.save(update_fields=["wanted"])
    stood = slot.launches.filter(status__in=[ReplicaStatus.READY, ReplicaStatus.RECOVERING])
    if stood.update(status=ReplicaStatus.DRAINING):
        record(
            Sentence(_("The fallback finishes its answers and stands down.")), deployment=deployment
        )
    elif Replica.objects.filter(pk__in=slot.launches.filter(status="starting")).exists():
        replicas.retire(slot)
    else:
        jobs.end_active(
            deployment, JobStatus.CANCELLED, Sentence(_("It is not needed.")), slot=slot
        )
        return
    jobs.create(deployment, JobKind.DRAIN, slot=slot, automatic=True)
