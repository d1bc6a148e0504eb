"""Noise: how loud the boxes are, the hours that hold them back, and what those do and cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time

import msgspec
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from dashboard import lifecycle
from dashboard.access import seen
from dashboard.audit import actor_of, note
from dashboard.effects import Effects, effects
from dashboard.forms.quiet import QuietRuleForm
from dashboard.forms.week import DAYS
from dashboard.lifecycle.limits import rules_in_force
from dashboard.models import Node, Replica
from dashboard.sentences import Sentence
from dashboard.views.access import hidden_of, may_operate, operator_required
from dashboard.views.monitor.tables import Cell, csv_table
from dashboard.views.trail import note_form
from engine.errors import Said
from engine.protocol.agent import Limits, LimitState
from monitoring.accounts.quiet import held_until
from monitoring.models import LimitSpan, NodeLimits, PriceList, QuietRule
from monitoring.scopes import Hidden

RECENT = 20
NIGHT = {"begins": time(22), "ends": time(7)}
"""What the form offers; most want just that."""
WHAT = {"power": "W", "clock": "MHz", "batch": ""}


@dataclass(frozen=True)
class Outcome:
    """One wish and what became of it."""

    what: str
    target: str
    """An accelerator, or a deployment."""
    wanted: float | None
    value: float | None
    unit: str
    reason: Sentence


@dataclass(frozen=True)
class HeldNode:
    node: Node
    why: str
    since: datetime | None
    until: datetime | None
    outcomes: list[Outcome]


@login_required
@require_GET
@never_cache
def noise(request: HttpRequest) -> HttpResponse:
    return _page(request)


@operator_required
@require_POST
def rule_add(request: HttpRequest) -> HttpResponse:
    form = QuietRuleForm(request.POST, hidden=hidden_of(request))
    if not form.is_valid():
        return _page(request, form)
    with transaction.atomic():
        rule = form.save()
        note_form(request, "quiet.add", rule.name, form)
        lifecycle.follow_schedule()
    messages.success(request, _("“%(rule)s” is in force.") % {"rule": rule.name})
    return redirect("monitor-noise")


@operator_required
@require_POST
def rule_act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Put it in force, put it off, or remove it: at once, whatever the hour."""
    rule = get_object_or_404(seen(QuietRule.objects.all(), hidden_of(request)), pk=pk)
    with transaction.atomic():
        note(actor_of(request), f"quiet.{action}", rule.name, before={"on": rule.enabled})
        if action == "remove":
            rule.delete()
        else:
            rule.enabled = action == "on"
            rule.save(update_fields=["enabled"])
        lifecycle.follow_schedule()
    said = {
        "on": _("“%(rule)s” is in force."),
        "off": _("“%(rule)s” is off."),
        "remove": _("“%(rule)s” was removed."),
    }
    messages.success(request, said[action] % {"rule": rule.name})
    return redirect("monitor-noise")


@login_required
@require_GET
@never_cache
def noise_table(request: HttpRequest) -> HttpResponse:
    """What quiet hours did, as CSV."""
    head = ["what", "where", "unit", "during", "otherwise", "minutes_during", "minutes_otherwise"]
    return csv_table(
        "quiet-hours", [*head, "reason"], _effect_rows(effects(_zone(), hidden_of(request)))
    )


def _page(request: HttpRequest, form: QuietRuleForm | None = None) -> HttpResponse:
    now, zone = timezone.now(), _zone()
    hidden = hidden_of(request)
    spans = seen(LimitSpan.objects.select_related("node"), hidden, deployment="")[:RECENT]
    return render(
        request,
        "monitor/noise.html",
        {
            "rules": [(rule, _days(rule)) for rule in seen(QuietRule.objects.all(), hidden)],
            "held": _held(now, hidden),
            "effects": effects(zone, hidden),
            "spans": spans,
            "form": form or QuietRuleForm(initial={"zone": zone, **NIGHT}, hidden=hidden),
            "form_open": form is not None,
            "nodes": Node.objects.exclude(pk__in=hidden.nodes).exists(),
            "may_operate": may_operate(request),
        },
        status=422 if form else 200,
    )


def _zone() -> str:
    return PriceList.current().zone


def _days(rule: QuietRule) -> str:
    names = dict(DAYS)
    if len(rule.days) == len(names):
        return _("every day")
    return ", ".join(str(names[day]) for day in rule.days)


def _held(now: datetime, hidden: Hidden) -> list[HeldNode]:
    """Nodes that are held back now."""
    rules, found = rules_in_force(), []
    living = seen(Replica.objects.filter(ended_at=None), hidden, node="")
    launches = dict(living.values_list("launch", "deployment__name"))
    open_spans = dict(LimitSpan.objects.filter(until=None).values_list("node", "since"))
    rows = NodeLimits.objects.exclude(wanted={}).select_related("node").order_by("node__name")
    for row in seen(rows, hidden, deployment=""):
        wanted = msgspec.convert(row.wanted, Limits)
        states = msgspec.convert(row.states, list[LimitState])
        until = held_until(rules, row.node_id, now)
        outcomes = [_outcome(state, wanted, launches) for state in states]
        since = open_spans.get(row.node_id)
        found.append(HeldNode(row.node, wanted.why, since, until, outcomes))
    return found


def _outcome(state: LimitState, wanted: Limits, launches: dict[str, str]) -> Outcome:
    wish: float | None = wanted.batch_caps.get(state.target)
    if state.what != "batch":
        wish = wanted.power_watts if state.what == "power" else wanted.clock_hertz
    scale = 1e-6 if state.what == "clock" else 1.0
    reason: Said = state.reason
    return Outcome(
        {"power": _("power limit"), "clock": _("highest clock"), "batch": _("answers at once")}[
            state.what
        ],
        _target(state.target, launches),
        None if wish is None else wish * scale,
        None if state.value is None else state.value * scale,
        WHAT[state.what],
        Sentence.of(reason),
    )


def _target(target: str, launches: dict[str, str]) -> str:
    if target.startswith("gpu:"):
        return _("accelerator %(number)s") % {"number": target.removeprefix("gpu:")}
    return _("this node") if target == "node" else launches.get(target, target)


def _effect_rows(found: Effects) -> Iterator[Sequence[Cell]]:
    for row in found.rows:
        seen = row.effect
        reason = _(seen.reason) if seen.reason else ""
        yield [
            row.what,
            row.where,
            row.unit,
            seen.during,
            seen.outside,
            seen.minutes_during,
            seen.minutes_outside,
            reason,
        ]


urlpatterns = [
    path("noise/", noise, name="monitor-noise"),
    path("noise/rules/", rule_add, name="quiet-rule-add"),
    path("noise/rules/<int:pk>/on/", rule_act, {"action": "on"}, name="quiet-rule-on"),
    path("noise/rules/<int:pk>/off/", rule_act, {"action": "off"}, name="quiet-rule-off"),
    path("noise/rules/<int:pk>/remove/", rule_act, {"action": "remove"}, name="quiet-rule-remove"),
    path("noise/quiet-hours.csv", noise_table, name="noise-table"),
]
