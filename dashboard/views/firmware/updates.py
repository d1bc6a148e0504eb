"""Updates: what is under way, a new one, and each one followed live."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.access import seen
from dashboard.audit import actor_of
from dashboard.choices import UpdateState
from dashboard.errors import StatusConflict
from dashboard.forms.updates import ApprovalForm, RolloutForm
from dashboard.lifecycle import updates as lifecycle
from dashboard.models import FirmwareImage, NodeUpdate, Rollout
from dashboard.updates.verifying import verify
from dashboard.views.access import hidden_of, may_administer, may_operate, operator_required

SHOWN = 50
WAY = (
    UpdateState.VERIFIED,
    UpdateState.APPROVED,
    UpdateState.DRAINING,
    UpdateState.PRECHECK,
    UpdateState.UPLOADING,
    UpdateState.APPLYING,
    UpdateState.AWAITING_RESET,
    UpdateState.REBOOTING,
    UpdateState.VALIDATING,
    UpdateState.RELEASED,
)

RESTING = (UpdateState.VERIFIED, UpdateState.APPROVED, UpdateState.RELEASED)
"""In these nothing is being done: it waits, or is over."""


@dataclass(frozen=True)
class Stop:
    """One state on the way."""

    label: str
    status: str
    """done, running, failed, skipped or pending."""
    at: datetime | None
    """When it was reached."""


@dataclass(frozen=True)
class Progress:
    update: NodeUpdate
    stops: list[Stop]
    notes: list[object]


@login_required
@require_safe
def updates(request: HttpRequest) -> HttpResponse:
    rows = _seen(request).select_related("image").prefetch_related("updates__node")[:SHOWN]
    return render(
        request,
        "firmware/updates.html",
        {
            "rollouts": rows,
            "images": FirmwareImage.objects.exists(),
            "may_operate": may_operate(request),
        },
    )


@operator_required
@require_http_methods(["GET", "POST"])
def update_new(request: HttpRequest, image: int) -> HttpResponse:
    found = get_object_or_404(FirmwareImage, pk=image)
    form = RolloutForm(
        found, request.POST if request.method == "POST" else None, hidden_of(request)
    )
    if request.method == "POST" and form.is_valid():
        cleaned = form.cleaned_data
        try:
            rollout = lifecycle.draft(
                found,
                form.chosen,
                token=cleaned["token"],
                reason=cleaned["reason"],
                actor=actor_of(request),
                allow_downgrade=cleaned["allow_downgrade"],
                on_reset=cleaned["on_reset"],
                not_before=cleaned["not_before"],
            )
            verify(rollout)
        except StatusConflict as error:
            form.add_error(None, str(error))
        else:
            return redirect("firmware-update", rollout.pk)
    return render(
        request,
        "firmware/update_new.html",
        {"form": form, "image": found},
        status=422 if form.errors else 200,
    )


@login_required
@require_safe
def update_detail(request: HttpRequest, pk: int) -> HttpResponse:
    rollout = _rollout(request, pk)
    return _page(request, rollout, _approval(rollout))


def _seen(request: HttpRequest) -> QuerySet[Rollout]:
    """A roll-out with a box that somebody may not see is not there for them."""
    return seen(Rollout.objects.all(), hidden_of(request), "updates__node", "")


def _rollout(request: HttpRequest, pk: int) -> Rollout:
    return get_object_or_404(_seen(request).select_related("image", "image__signed_by"), pk=pk)


def _approval(rollout: Rollout, data: object = None) -> ApprovalForm:
    return ApprovalForm(data, reversible=rollout.image.reversible is True)


def _page(
    request: HttpRequest, rollout: Rollout, approval: ApprovalForm, status: int = 200
) -> HttpResponse:
    rows = rollout.updates.select_related("node", "part").prefetch_related("notes")
    states = {row.state for row in rows}
    made_it = rollout.made_by_id is not None and rollout.made_by_id == request.user.pk
    return render(
        request,
        "firmware/update.html",
        {
            "rollout": rollout,
            "progress": [Progress(row, _stops(row), list(row.notes.all())) for row in rows],
            "approval": approval,
            "waits": states == {UpdateState.VERIFIED},
            "may_cancel": may_operate(request) and lifecycle.can_be_cancelled(rollout, states),
            "some_run_it": UpdateState.RELEASED in states,
            "may_approve": may_administer(request) and not made_it,
            "made_it": made_it,
            "may_operate": may_operate(request),
        },
        status=status,
    )


def _stops(update: NodeUpdate) -> list[Stop]:
    reached_at: dict[str, datetime] = {}
    for note in update.notes.all():
        reached_at.setdefault(note.state, note.at)
    seen = set(reached_at) | {update.state}
    reached = max((place for place, state in enumerate(WAY) if state in seen), default=-1)
    over = update.state in (UpdateState.HELD, UpdateState.CANCELLED)
    stops = []
    for place, state in enumerate(WAY):
        if state == update.state and state not in RESTING:
            status = "running"
        elif over and place == reached:
            status = "failed" if update.state == UpdateState.HELD else "skipped"
        elif place <= reached:
            status = "done" if state in seen else "skipped"
        else:
            status = "skipped" if over else "pending"
        stops.append(Stop(str(state.label), status, reached_at.get(state)))
    return stops


@operator_required
@require_POST
def update_act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    rollout = _rollout(request, pk)
    try:
        if action == "cancel":
            lifecycle.cancel(rollout, actor_of(request))
            return redirect("firmware-update", pk)
        if not may_administer(request):
            raise PermissionDenied(_("Only an administrator approves firmware."))
        form = _approval(rollout, request.POST)
        if not form.is_valid():
            return _page(request, rollout, form, 422)
        lifecycle.approve(rollout, actor_of(request), form.cleaned_data["reason"])
    except StatusConflict as error:
        messages.error(request, str(error))
    return redirect("firmware-update", pk)


@operator_required
@require_POST
def node_update_act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Give a held node back, or reset one on which something is staged."""
    rows = seen(
        NodeUpdate.objects.select_related("node", "rollout"), hidden_of(request), "node", ""
    )
    update = get_object_or_404(rows, pk=pk)
    act = lifecycle.release if action == "release" else lifecycle.ask_for_reset
    try:
        act(update, actor_of(request))
    except StatusConflict as error:
        messages.error(request, str(error))
    return redirect("firmware-update", update.rollout_id)
