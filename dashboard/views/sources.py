"""A node's sources: what is read outside the machine, and whether it can be."""

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import lifecycle
from dashboard.audit import actor_of, note
from dashboard.calibration import CALIBRATED, CalibrationError, calibrated
from dashboard.errors import StatusConflict
from dashboard.forms.sources import FORMS, SourceForm
from dashboard.forms.sources.sound import level_field
from dashboard.models import Node
from dashboard.source_state import states
from dashboard.views.access import may_operate, operator_required
from monitoring.models import NodeSource, SourceKind
from monitoring.sources import FanLawSource, MicrophoneSource

DESCRIPTIONS = {
    SourceKind.REDFISH: gettext_lazy(
        "Power, energy, fans, temperatures and the air at the intake."
    ),
    SourceKind.PDU: gettext_lazy("Watts and kilowatt-hours at the plug, the widest there is."),
    SourceKind.METER: gettext_lazy("Noise, measured by an IEC 61672 meter on a cable."),
    SourceKind.MICROPHONE: gettext_lazy("Noise, once it was calibrated with a meter."),
    SourceKind.FAN_LAW: gettext_lazy("Noise, where nothing listens: a guess with its band."),
    SourceKind.DECLARED_NOISE: gettext_lazy("The data sheet's level, shown as such."),
    SourceKind.DECLARED_POWER: gettext_lazy("The data sheet's watts, shown as such."),
}


class CalibrationForm(forms.Form):
    level = level_field(
        gettext_lazy("The meter shows now, dB(A)"),
        widget=forms.NumberInput(attrs={"step": "0.1", "inputmode": "decimal"}),
    )
    background = level_field(
        gettext_lazy("With the box off, dB(A)"),
        required=False,
        widget=forms.NumberInput(attrs={"step": "0.1", "inputmode": "decimal"}),
        help_text=gettext_lazy("What the room alone makes is taken away; empty if it is quiet."),
    )


@login_required
@require_safe
def sources(request: HttpRequest, name: str) -> HttpResponse:
    return _page(request, get_object_or_404(Node, name=name))


@operator_required
@require_http_methods(["GET", "POST"])
def source_new(request: HttpRequest, name: str, kind: str) -> HttpResponse:
    node = get_object_or_404(Node, name=name)
    if kind not in FORMS:
        raise Http404(kind)
    row = NodeSource(node=node, kind=kind)
    form = FORMS[kind](request.POST if request.method == "POST" else None)
    return _edit(request, row, form)


@operator_required
@require_http_methods(["GET", "POST"])
def source_edit(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    row = _row(name, pk)
    form = FORMS[row.kind](request.POST if request.method == "POST" else None, row)
    return _edit(request, row, form)


@operator_required
@require_POST
@transaction.atomic
def source_remove(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    row = _row(name, pk)
    told = _told(row)
    lifecycle.remove_source(row, request.user.get_username())
    note(actor_of(request), "source.remove", str(row), before=told)
    return redirect("node-sources", name)


@operator_required
@require_POST
def source_calibrate(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    """Take what a meter shows now for what is heard now."""
    row = _row(name, pk)
    source = row.source
    if not isinstance(source, MicrophoneSource | FanLawSource):
        raise Http404(row.kind)
    form = CalibrationForm(request.POST)
    if not form.is_valid():
        told = [str(error) for errors in form.errors.values() for error in errors]
        messages.error(request, " ".join(told))
        return redirect("node-sources", name)
    try:
        changed = calibrated(source, row.node, **form.cleaned_data)
    except CalibrationError as error:
        messages.error(request, str(error))
        return redirect("node-sources", name)
    with transaction.atomic():
        lifecycle.save_source(row, changed, request.user.get_username())
        note(actor_of(request), "source.calibrate", str(row), after=_told(row))
    messages.success(request, _("%(source)s is calibrated.") % {"source": row.name})
    return redirect("node-sources", name)


def _told(row: NodeSource) -> dict[str, str]:
    """What it is; its address and its password may open something."""
    return {"node": row.node.name, "name": row.name, "kind": row.kind}


def _row(name: str, pk: int) -> NodeSource:
    return get_object_or_404(NodeSource.objects.select_related("node"), node__name=name, pk=pk)


def _edit(request: HttpRequest, row: NodeSource, form: SourceForm) -> HttpResponse:
    if form.is_bound and form.is_valid():
        try:
            what = "source.change" if row.pk else "source.add"
            with transaction.atomic():
                lifecycle.save_source(row, form.source(), request.user.get_username())
                note(actor_of(request), what, str(row), after=_told(row))
        except StatusConflict as error:
            form.add_error("name", str(error))
        else:
            return redirect("node-sources", row.node.name)
    return render(
        request,
        "nodes/source.html",
        {
            "node": row.node,
            "row": row,
            "form": form,
            "kind": SourceKind(row.kind),
            "calibrates": row.kind in CALIBRATED,
        },
        status=422 if form.errors else 200,
    )


def _page(request: HttpRequest, node: Node) -> HttpResponse:
    shown = states(node)
    dialogs = [(state, CalibrationForm(auto_id=f"{state.row.pk}-%s")) for state in shown]
    return render(
        request,
        "nodes/sources.html",
        {
            "node": node,
            "states": shown,
            "dialogs": dialogs,
            "kinds": [(kind, kind.label, text) for kind, text in DESCRIPTIONS.items()],
            "calibrated_kinds": CALIBRATED,
            "may_operate": may_operate(request),
        },
    )
