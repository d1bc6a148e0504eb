"""Slots that should be filled, but nothing runs there and nobody is at it."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard.choices import (
    ACTIVE_JOB_STATUSES,
    DeploymentStatus,
    JobKind,
    ReturnMode,
)
from dashboard.errors import PlacementError
from dashboard.lifecycle import candidates, fallbacks
from dashboard.lifecycle.capacity import find_placement
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.failures import start_again
from dashboard.lifecycle.observation import NODE_OFFLINE
from dashboard.lifecycle.slots import change, laid_out, live_launches, settle
from dashboard.models import Slot
from dashboard.sentences import Sentence
from engine.errors import EngineError

BACK = _("%(node)s is back; press Return.")
CAN_RETURN = _("It can start again; press Return.")


@transaction.atomic
def fill_slots(deployment_id: int) -> None:
    """Start again what has a place now, unless that is left to a person or to a later moment."""
    deployment = locked(deployment_id)
    if not deployment.wanted or deployment.status == DeploymentStatus.STOPPING:
        return
    laid_out(deployment)
    replaced = deployment.jobs.filter(
        kind__in=[JobKind.CHANGE, JobKind.MOVE], status__in=ACTIVE_JOB_STATUSES
    )
    if replaced.exists():
        return  # It empties places itself, and fills them.
    candidates.sweep(deployment)
    live = live_launches(deployment)
    for slot in deployment.slots.filter(wanted=True, given_up=False):
        slot.deployment = deployment
        busy = slot.jobs.filter(status__in=ACTIVE_JOB_STATUSES).exists()
        held = slot.hold_until is not None and slot.hold_until > timezone.now()
        if not busy and not held and (slot.role, slot.index) not in live:
            _fill(slot)
    settle(deployment)


def _fill(slot: Slot) -> None:
    if _left_to_a_person(slot):
        if _has_a_place(slot):
            change(slot, reason=_invitation(slot.reason))
        return
    start_again(slot, slot.reason)


def _left_to_a_person(slot: Slot) -> bool:
    if slot.is_fallback or slot.return_asked:
        return False
    fallback = fallbacks.stands_in(slot.deployment)
    return fallback is not None and fallback.returns == ReturnMode.CLICK


def _has_a_place(slot: Slot) -> bool:
    try:
        find_placement(slot)
    except (PlacementError, EngineError):
        return False
    return True


def _invitation(cause: Sentence) -> Sentence:
    if cause.message == NODE_OFFLINE:
        return Sentence(BACK, node=cause.params["node"])
    return cause if cause.message == BACK else Sentence(CAN_RETURN)
