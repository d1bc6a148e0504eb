"""The rules: what is watched, from which value on, and for how long."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, re_path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard.access import seen
from dashboard.audit import actor_of, note
from dashboard.forms.alerts import ChoiceForm, RuleForm
from dashboard.views.access import hidden_of, may_operate, operator_required
from dashboard.views.trail import note_form
from monitoring.alerts.builtin import edited, original, reset
from monitoring.alerts.kinds import KINDS, Kind
from monitoring.alerts.wording import amount, lasting
from monitoring.metrics import METRICS
from monitoring.models import AlertStatus, PriceList, Rule
from monitoring.models.alerts import GRAVEST_FIRST


def _seen(request: HttpRequest) -> QuerySet[Rule]:
    """Those about something that this person may not see are not there."""
    return seen(Rule.objects.all(), hidden_of(request))


@login_required
@require_GET
def rules(request: HttpRequest) -> HttpResponse:
    firing = Count("alerts", filter=Q(alerts__status=AlertStatus.FIRING))
    found = _seen(request).select_related("node", "deployment").annotate(firing=firing)
    shown = [
        {"rule": rule, "kind": kind, "says": _says(rule, kind), "edited": edited(rule)}
        for rule in found.order_by("-enabled", GRAVEST_FIRST, "pk")
        if (kind := KINDS.get(rule.kind))
    ]
    return render(
        request,
        "monitor/alert_rules.html",
        {"rules": shown, "choice": ChoiceForm(), "may_operate": may_operate(request)},
    )


@operator_required
@require_http_methods(["GET", "POST"])
def rule_new(request: HttpRequest) -> HttpResponse:
    """`kind` and `metric` stand in the address: the form's units depend on them."""
    if "kind" not in request.GET:
        return render(request, "monitor/alert_choice.html", {"choice": ChoiceForm()})
    choice = ChoiceForm(request.GET)
    if not choice.is_valid() or choice.cleaned_data["kind"] not in KINDS:
        return render(request, "monitor/alert_choice.html", {"choice": choice}, status=422)
    kind, metric = KINDS[choice.cleaned_data["kind"]], choice.cleaned_data["metric"]
    posted = request.POST if request.method == "POST" else None
    form = RuleForm(posted, kind=kind, metric=metric, hidden=hidden_of(request))
    return _edit(request, form)


@operator_required
@require_http_methods(["GET", "POST"])
def rule(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(_seen(request), pk=pk)
    kind = KINDS.get(row.kind)
    if kind is None:
        raise Http404
    posted = request.POST if request.method == "POST" else None
    hidden = hidden_of(request)
    form = RuleForm(posted, instance=row, kind=kind, metric=row.metric, hidden=hidden)
    return _edit(request, form)


def _edit(request: HttpRequest, form: RuleForm) -> HttpResponse:
    if form.is_bound and form.is_valid():
        action = "rule.change" if form.instance.pk else "rule.add"
        with transaction.atomic():
            row = form.save()
            note_form(request, action, row, form)
        messages.success(request, _("“%(rule)s” holds from now on.") % {"rule": row})
        return redirect("alert-rules")
    row = form.instance
    return render(
        request,
        "monitor/alert_rule.html",
        {
            "form": form,
            "rule": row if row.pk else None,
            "kind": form.kind,
            "metric": METRICS.get(form.metric),
            "edited": bool(row.pk) and edited(row),
            "builtin": original(row) is not None,
        },
        status=422 if form.errors else 200,
    )


@operator_required
@require_POST
@transaction.atomic
def rule_act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    row = get_object_or_404(_seen(request), pk=pk)
    if action == "delete" and original(row) is not None:
        return redirect("alert-rules")
    note(actor_of(request), f"rule.{action}", row, before={"on": row.enabled})
    if action == "reset":
        reset(row)
        messages.success(request, _("“%(rule)s” is as it was at first.") % {"rule": row})
    elif action == "delete":
        row.delete()
        messages.success(request, _("“%(rule)s” is deleted.") % {"rule": row})
    else:
        row.enabled = action == "on"
        row.save(update_fields=["enabled", "changed"])
    return redirect("alert-rules")


def _says(rule: Rule, kind: Kind) -> str:
    """The rule in one line: above 95 % for 5 min."""
    unit = kind.unit or (METRICS[rule.metric].unit if rule.metric in METRICS else "")
    if kind.name == "budget":
        unit = PriceList.current().currency
    parts = {"value": amount(rule.threshold, unit), "time": lasting(rule.for_seconds)}
    if rule.for_seconds == 0:
        return (_("above %(value)s") if rule.above else _("below %(value)s")) % parts
    if rule.above:
        return _("above %(value)s for %(time)s") % parts
    return _("below %(value)s for %(time)s") % parts


urlpatterns = [
    path("alerts/rules/", rules, name="alert-rules"),
    path("alerts/rules/new/", rule_new, name="alert-rule-new"),
    re_path(r"^alerts/rules/(?P<pk>\d{1,18})/$", rule, name="alert-rule"),
    re_path(
        r"^alerts/rules/(?P<pk>\d{1,18})/(?P<action>on|off|reset|delete)/$",
        rule_act,
        name="alert-rule-act",
    ),
]
