"""Firmware updates: the only writer of their states. Steps are in `dashboard.updates`.

One node of the fleet is out for firmware at a time: a partial unique index holds it, and whoever
starts one holds an advisory lock meanwhile.
"""

from collections.abc import Sequence, Set
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import audit, outbox, panel_settings
from dashboard.audit import PANEL, Actor
from dashboard.choices import (
    UNDERWAY_UPDATE_STATES,
    UPDATE_TRANSITIONS,
    EventLevel,
    UpdateState,
)
from dashboard.errors import StatusConflict
from dashboard.lifecycle import evacuation
from dashboard.lifecycle.record import record
from dashboard.lifecycle.update_turns import (
    GOING,
    MAX_RESUMES,
    RUN_TASK,
    claim,
    look_again,
    note,
    remember,
    resume_overdue,
)
from dashboard.models import FirmwareImage, FirmwarePart, Node, NodeUpdate, Rollout
from dashboard.sentences import Sentence
from dashboard.updates import news, patience, window

__all__ = [
    "CANCELLABLE",
    "GOING",
    "MAX_RESUMES",
    "ORDERING",
    "RUN_TASK",
    "approve",
    "ask_for_reset",
    "can_be_cancelled",
    "cancel",
    "claim",
    "complete",
    "conclude_verification",
    "draft",
    "hold",
    "look_again",
    "move",
    "note",
    "release",
    "remember",
    "resume_overdue",
    "start_due",
    "tell",
]

LOCK = 0x6669726D
"""Of two who start an update the second waits, and then sees the first."""
ORDERING = frozenset({UpdateState.UPLOADING, UpdateState.APPLYING, UpdateState.REBOOTING})
"""In which the node's agent may have an order; see `lifecycle.orders`."""
WAITING = frozenset({UpdateState.DRAFT, UpdateState.VERIFIED, UpdateState.APPROVED})
CANCELLABLE = WAITING | {UpdateState.DRAINING, UpdateState.PRECHECK}


@transaction.atomic
def draft(
    image: FirmwareImage,
    parts: Sequence[FirmwarePart],
    *,
    token: str,
    reason: str,
    actor: Actor,
    allow_downgrade: bool = False,
    on_reset: bool = False,
    not_before: datetime | None = None,
    automatic: bool = False,
) -> Rollout:
    """A roll-out of `image` to `parts`, one of a node, in this order. The same form sent twice is
    one roll-out. Raises StatusConflict when a node is in another unfinished one."""
    _hold_lock()
    known = Rollout.objects.filter(token=token).first()
    if known is not None:
        return known
    _check_free(parts)
    rollout = Rollout.objects.create(
        image=image,
        token=token,
        reason=reason[:300],
        allow_downgrade=allow_downgrade,
        on_reset=on_reset,
        not_before=not_before,
        automatic=automatic,
        made_by=User.objects.filter(pk=actor.user_id or 0).first(),
        by=str(actor)[:150],
    )
    for order, part in enumerate(parts):
        NodeUpdate.objects.create(
            rollout=rollout,
            node=part.node,
            part=part,
            part_key=part.key,
            order=order,
            from_version=part.active,
            to_version=image.version,
        )
    nodes = [part.node.name for part in parts]
    audit.note(actor, "firmware.draft", rollout, after={"image": str(image), "nodes": nodes})
    return rollout


def _check_free(parts: Sequence[FirmwarePart]) -> None:
    nodes = [part.node_id for part in parts]
    if not nodes or len(set(nodes)) < len(nodes):
        raise StatusConflict(Sentence(_("Choose one component of each node, and a node at least.")))
    unfinished = [*WAITING, *UNDERWAY_UPDATE_STATES]
    other = NodeUpdate.objects.filter(node__in=nodes, state__in=unfinished).first()
    if other is not None:
        words = _("%(node)s is in an update already that has not ended: %(update)s.")
        raise StatusConflict(Sentence(words, node=other.node.name, update=str(other.rollout)))


@transaction.atomic
def conclude_verification(rollout: Rollout, problem: Sentence | None) -> None:
    """The image was looked at again: it may be approved, or is refused. Said twice, it counts
    once."""
    drafts = list(rollout.updates.select_for_update().filter(state=UpdateState.DRAFT))
    for update in drafts:
        if problem is None:
            move(update, UpdateState.VERIFIED, Sentence(_("The image was verified.")))
        else:
            move(update, UpdateState.CANCELLED, problem, reason=problem)
    if not drafts:
        return
    if problem is None:
        news.tell_wanted(rollout)
    else:
        _finish(rollout, problem)
        news.tell_refused(rollout, problem)


@transaction.atomic
def approve(rollout: Rollout, actor: Actor, reason: str) -> None:
    """By a second administrator. Raises StatusConflict, also for who made it."""
    _hold_lock()
    rollout = Rollout.objects.select_for_update(of=("self",)).get(pk=rollout.pk)
    if rollout.made_by_id is not None and rollout.made_by_id == actor.user_id:
        raise StatusConflict(
            Sentence(_("Somebody else must approve it: two people look before firmware changes."))
        )
    waiting = list(rollout.updates.select_for_update().filter(state=UpdateState.VERIFIED))
    if rollout.approved_at is not None or not waiting:
        raise StatusConflict(Sentence(_("It does not wait for an approval.")))
    rollout.approver_id, rollout.approved_by = actor.user_id, str(actor)[:150]
    rollout.approved_at, rollout.approval_reason = timezone.now(), reason[:300]
    rollout.save()
    for update in waiting:
        words = Sentence(_("Approved by %(by)s. %(why)s"), by=str(actor), why=reason[:300])
        move(update, UpdateState.APPROVED, words, by=str(actor))
    audit.note(actor, "firmware.approve", rollout, why=reason)
    outbox.task("tandem.reconcile")


def can_be_cancelled(rollout: Rollout, states: Set[str]) -> bool:
    """Not while a box is being changed, nor when all is over."""
    going = states & (UNDERWAY_UPDATE_STATES - CANCELLABLE)
    return rollout.finished_at is None and not going and bool(states & CANCELLABLE)


@transaction.atomic
def cancel(rollout: Rollout, actor: Actor) -> None:
    """Before anything was applied. Raises StatusConflict afterwards."""
    _hold_lock()
    updates = list(rollout.updates.select_for_update())
    going = [one for one in updates if one.state in UNDERWAY_UPDATE_STATES - CANCELLABLE]
    if going:
        raise StatusConflict(
            Sentence(
                _("%(node)s is being changed; that cannot be broken off."), node=going[0].node.name
            )
        )
    if not any(one.state in CANCELLABLE for one in updates):
        raise StatusConflict(Sentence(_("It has ended.")))
    words = Sentence(_("Cancelled by %(by)s."), by=str(actor))
    for update in updates:
        if update.state in CANCELLABLE:
            was_out = update.state in UNDERWAY_UPDATE_STATES
            move(update, UpdateState.CANCELLED, words, reason=words, by=str(actor))
            if was_out:
                _give_back(update)
    _finish(rollout, words)
    audit.note(actor, "firmware.cancel", rollout)


@transaction.atomic
def release(update: NodeUpdate, actor: Actor) -> None:
    """A person has looked at a held node and gives it back."""
    update = NodeUpdate.objects.select_for_update(of=("self",)).get(pk=update.pk)
    if update.state != UpdateState.HELD:
        raise StatusConflict(Sentence(_("It is not held.")))
    move(update, UpdateState.RELEASED, Sentence(_("Given back by %(by)s."), by=str(actor)))
    evacuation.give_back(update.node, actor)
    audit.note(actor, "firmware.release", update.rollout, after={"node": update.node.name})


@transaction.atomic
def ask_for_reset(update: NodeUpdate, actor: Actor) -> None:
    """What is staged is to run now."""
    update = NodeUpdate.objects.select_for_update(of=("self",)).get(pk=update.pk)
    if update.state != UpdateState.AWAITING_RESET:
        raise StatusConflict(Sentence(_("It does not wait for a reset.")))
    remember(update, reset_asked=True)
    note(update, Sentence(_("Reset asked for by %(by)s."), by=str(actor)), by=str(actor))
    audit.note(actor, "firmware.reset", update.rollout, after={"node": update.node.name})
    look_again(update, 0.0)


@transaction.atomic
def start_due() -> None:
    """Take the next node of what is approved and due out of service, if none is out and it is time
    for it."""
    if not window.is_open(panel_settings.current(), timezone.localtime()):
        return
    _hold_lock()
    if NodeUpdate.objects.filter(state__in=UNDERWAY_UPDATE_STATES).exists():
        return
    waiting = NodeUpdate.objects.filter(state=UpdateState.APPROVED)
    for update in waiting.select_related("rollout", "node").order_by("rollout_id", "order"):
        begins = update.rollout.not_before
        if begins is not None and begins > timezone.now():
            continue
        _start(update)
        return


def _start(update: NodeUpdate) -> None:
    update.started_at = timezone.now()
    update.save(update_fields=["started_at"])
    # Whoever took it out of service before takes it into service again.
    remember(update, was_out=update.node.evacuated)
    why = Sentence(_("Firmware: %(image)s."), image=str(update.rollout.image))
    words = Sentence(_("Its work moves to other nodes."))
    move(update, UpdateState.DRAINING, words, deadline=patience.DRAIN)
    evacuation.evacuate(update.node, PANEL, why)
    look_again(update, 0.0)


def _give_back(update: NodeUpdate) -> None:
    if not update.memory.get("was_out"):
        evacuation.give_back(update.node, PANEL)


def move(
    update: NodeUpdate,
    to: UpdateState,
    text: Sentence,
    *,
    reason: Sentence | None = None,
    deadline: timedelta | None = None,
    by: str = "",
) -> None:
    """Change the state if nobody has changed it, or taken it up, since `update` was read.

    Raises StatusConflict when the state does not allow it or exactly one row was not changed.
    """
    old = UpdateState(update.state)
    if to not in UPDATE_TRANSITIONS[old]:
        raise StatusConflict(Sentence(_("It is “%(state)s” now."), state=str(old.label)))
    over = to in (UpdateState.RELEASED, UpdateState.CANCELLED)
    now = timezone.now()
    changes: dict[str, object] = {
        "state": to,
        "reason": reason or Sentence(),
        "percent": None,
        "resumes": 0,
        "deadline_at": now + deadline if deadline else None,
        "finished_at": now if over else None,
    }
    guard = NodeUpdate.objects.filter(pk=update.pk, state=old, ticket=update.ticket)
    if guard.update(**changes) != 1:
        raise StatusConflict(Sentence(_("Somebody else changed it at the same moment.")))
    for name, value in changes.items():
        setattr(update, name, value)
    note(update, text, by=by)
    if old in ORDERING or to in ORDERING:
        _change_orders(update.node_id)


def _change_orders(node_id: int) -> None:
    """What the agent is to install, or to do next, may be another thing now."""
    Node.objects.filter(pk=node_id).update(desired_generation=F("desired_generation") + 1)
    outbox.nudge(node_id)


def tell(update: NodeUpdate, reason: Sentence, percent: float | None) -> None:
    """What it is at."""
    if (update.reason, update.percent) != (reason, percent):
        update.reason, update.percent = reason, percent
        mine = NodeUpdate.objects.filter(pk=update.pk, ticket=update.ticket)
        mine.update(reason=reason, percent=percent)
        outbox.announce("update", update.rollout_id)


@transaction.atomic
def hold(update: NodeUpdate, why: Sentence) -> None:
    """It failed: the node stays out of service until a person has looked, the others go on, and
    the roll-out stops."""
    move(update, UpdateState.HELD, why, reason=why)
    for other in update.rollout.updates.filter(state__in=WAITING):
        words = Sentence(_("Stopped, because %(node)s is held."), node=update.node.name)
        move(other, UpdateState.CANCELLED, words, reason=words)
    _finish(
        update.rollout, Sentence(_("%(node)s is held: %(why)s"), node=update.node.name, why=why)
    )
    record(
        Sentence(_("The firmware update is held: %(why)s"), why=why),
        level=EventLevel.ERROR,
        node=update.node,
    )
    told = {"node": update.node.name}
    audit.note(PANEL, "firmware.hold", update.rollout, after=told, why=str(why))
    node = Node.objects.get(pk=update.node_id)
    if not node.evacuated:
        evacuation.evacuate(node, PANEL, why)


@transaction.atomic
def complete(update: NodeUpdate, text: Sentence) -> None:
    """It runs as it should, and the node serves again."""
    move(update, UpdateState.RELEASED, text)
    _give_back(update)
    told = {"node": update.node.name, "version": update.to_version}
    audit.note(PANEL, "firmware.complete", update.rollout, after=told)
    record(
        Sentence(
            _("Firmware %(version)s is in use, after %(before)s."),
            version=update.to_version,
            before=update.from_version or "?",
        ),
        node=update.node,
    )
    rollout = update.rollout
    if not rollout.updates.exclude(state__in=[UpdateState.RELEASED]).exists():
        _finish(rollout, Sentence())
        news.tell_done(rollout)
    outbox.task("tandem.reconcile")


def _finish(rollout: Rollout, stopped: Sentence) -> None:
    Rollout.objects.filter(pk=rollout.pk).update(finished_at=timezone.now(), stopped=stopped)
    outbox.announce("update", rollout.pk)


def _hold_lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
