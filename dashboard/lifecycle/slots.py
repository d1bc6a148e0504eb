"""Slots of a deployment, and the deployment's own status, which follows from theirs.

The caller of everything here holds the deployment's row lock (`changes.locked`).
"""

from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard.choices import (
    ACTIVE_JOB_STATUSES,
    LIVE_REPLICA_STATUSES,
    DeploymentStatus,
    FallbackMode,
    NodeStatus,
    ReplicaRole,
    ReplicaStatus,
)
from dashboard.lifecycle import fallbacks
from dashboard.lifecycle.changes import move, say_why
from dashboard.lifecycle.replicas import nodes_of, retire
from dashboard.lifecycle.standing import SlotState, standing
from dashboard.models import Deployment, Node, Replica, Slot
from dashboard.sentences import Sentence

NO_WORD = _("There is no word from the agent of %(node)s; its engine goes on.")
STANDING = (ReplicaRole.PRIMARY, ReplicaRole.FALLBACK)
"""Slots of a change or a move (candidate, retiring) are no part of how a deployment stands."""
PATIENCE = timedelta(seconds=10)
"""A launch that recovers for longer than this is not waited for any more."""
PAUSE = timedelta(seconds=1)
"""A restart that is due later than this is no help now."""


def lay_out(deployment: Deployment) -> list[Slot]:
    """Make the slots that the settings ask for, as good as new; answer those that should run."""
    fallback = deployment.fallback_or_none
    wanted = {(ReplicaRole.PRIMARY, index): True for index in range(deployment.dp)}
    if fallback is not None:
        wanted[ReplicaRole.FALLBACK, 0] = fallback.mode == FallbackMode.RESIDENT
    for slot in deployment.slots.all():
        if (slot.role, slot.index) not in wanted:
            retire(slot)
            slot.delete()
    fresh: dict[str, object] = {
        "reason": Sentence(),
        "given_up": False,
        "down_since": None,
        "hold_until": None,
        "failed_returns": 0,
        "return_asked": False,
        "revision": None,
    }
    for (role, index), runs in wanted.items():
        Slot.objects.update_or_create(
            deployment=deployment, role=role, index=index, defaults=fresh | {"wanted": runs}
        )
    return list(deployment.slots.filter(wanted=True))


def laid_out(deployment: Deployment) -> None:
    """Deployments of before there were slots get theirs."""
    if deployment.slots.exists():
        return
    for slot in lay_out(deployment):
        if deployment.status == DeploymentStatus.FAILED:
            change(slot, given_up=True, reason=deployment.reason)


def slot_of(deployment: Deployment, replica: Replica) -> Slot:
    """The slot that a launch fills; made where the launch is older than slots."""
    slot, _made = Slot.objects.get_or_create(
        deployment=deployment, role=replica.role, index=replica.index
    )
    slot.deployment = deployment
    return slot


def change(slot: Slot, **fields: object) -> None:
    for name, value in fields.items():
        setattr(slot, name, value)
    slot.save(update_fields=list(fields))


def live_launches(deployment: Deployment) -> dict[tuple[str, int], Replica]:
    rows = deployment.replicas.filter(status__in=LIVE_REPLICA_STATUSES)
    return {(replica.role, replica.index): replica for replica in rows}


def settle(deployment: Deployment) -> None:
    """Bring status and reason in line with the slots, and call a fallback in or send it home."""
    if not deployment.wanted or deployment.status == DeploymentStatus.STOPPING:
        return
    live = live_launches(deployment)
    slots = list(deployment.slots.filter(role__in=STANDING))
    states = [_state(slot, live.get((slot.role, slot.index))) for slot in slots]
    if fallbacks.follow(deployment, slots, states):
        settle(deployment)
        return
    old = deployment.status
    was_up = old != DeploymentStatus.STARTING or any(slot.down_since for slot in slots)
    to = standing(states, was_up=was_up)
    reason = _reason(to, slots, states, list(live.values()))
    if to == old:
        say_why(deployment, reason)
        return
    fields: dict[str, object] = {"reason": reason}
    if to == DeploymentStatus.READY:
        fields |= {"ready_at": deployment.ready_at or timezone.now(), "down_since": None}
    elif deployment.down_since is None:
        fields["down_since"] = timezone.now()
    if to in (DeploymentStatus.RESTARTING, DeploymentStatus.FAILED):
        fields["ready_at"] = None
    move(deployment, to, **fields)


def _state(slot: Slot, live: Replica | None) -> SlotState:
    soon = timezone.now() + PAUSE
    return SlotState(
        fallback=slot.is_fallback,
        wanted=slot.wanted,
        given_up=slot.given_up,
        launch=ReplicaStatus(live.status) if live else None,
        underway=slot.jobs.filter(status__in=ACTIVE_JOB_STATUSES, due_at__lte=soon).exists(),
        lost=live is not None and _is_lost(live),
    )


def _is_lost(replica: Replica) -> bool:
    if replica.status == ReplicaStatus.READY:
        return False
    since = replica.recovering_since
    return bool(since and timezone.now() - since > PATIENCE) or bool(offline_nodes(replica))


def offline_nodes(replica: Replica) -> list[str]:
    nodes = Node.objects.filter(pk__in=nodes_of(replica), status=NodeStatus.OFFLINE)
    return list(nodes.values_list("name", flat=True))


def _reason(
    to: DeploymentStatus, slots: list[Slot], states: list[SlotState], live: list[Replica]
) -> Sentence:
    if to == DeploymentStatus.READY:
        away = {name for replica in live for name in offline_nodes(replica)}
        return Sentence(NO_WORD, node=", ".join(sorted(away))) if away else Sentence()
    pairs = list(zip(slots, states, strict=True))
    cause = next((slot.reason for slot, state in pairs if not state.ready and slot.reason), None)
    cause = cause or Sentence()
    if to != DeploymentStatus.DEGRADED:
        return cause
    if any(state.ready and state.fallback for state in states):
        return Sentence(_("The fallback answers. %(cause)s"), cause=cause)
    primaries = [state for state in states if not state.fallback]
    return Sentence(
        _("%(ready)s of %(wanted)s replicas answer. %(cause)s"),
        ready=sum(state.ready for state in primaries),
        wanted=len(primaries),
        cause=cause,
    )
