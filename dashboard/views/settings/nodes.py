"""A node's settings: the form, what takes them when, and who changed them."""

from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.audit import actor_of
from dashboard.choices import LIVE_REPLICA_STATUSES
from dashboard.configuration.declared import Setting, SettingsRefused, Value, Values
from dashboard.configuration.node import NODE
from dashboard.forms.declared import SettingsForm
from dashboard.forms.offers import node_choices, secret_choices
from dashboard.lifecycle import settings as lifecycle
from dashboard.models import Deployment, Node, Revision
from dashboard.views.access import hidden_of, may_operate, operator_required
from dashboard.views.settings.history import SHOWN, Difference, history
from monitoring.scopes import NOTHING, Hidden


@dataclass(frozen=True)
class Effect:
    """What a change would do; nothing has happened yet."""

    live: list[Difference]
    later: list[Difference]
    """Taken by engines when they are started next."""
    engines: list[Deployment]
    """What runs here now, and would take `later` at its restart."""


@login_required
@require_http_methods(["GET", "POST"])
def node_settings(request: HttpRequest, name: str) -> HttpResponse:
    node = get_object_or_404(Node, name=name)
    if request.method == "POST":
        return _change(request, node)
    return _page(request, node, _form(request, node))


@operator_required
def _change(request: HttpRequest, node: Node) -> HttpResponse:
    form = _form(request, node)
    if not form.is_valid():
        return _page(request, node, form)
    try:
        if "preview" in request.POST:
            effect = effect_of(node, lifecycle.check_node(node, form.entered), hidden_of(request))
            return _page(request, node, form, effect)
        why = form.cleaned_data["why"]
        revision = lifecycle.change_node(node, form.entered, actor_of(request), why=why)
    except SettingsRefused as error:
        form.refuse(error.errors)
        return _page(request, node, form)
    if revision is None:
        messages.info(request, _("Nothing was different."))
    else:
        messages.success(request, _("Saved as revision %(number)s.") % {"number": revision.number})
    return redirect("node-settings", node.name)


@operator_required
@require_POST
def back(request: HttpRequest, name: str, number: str) -> HttpResponse:
    """The settings of an earlier revision again."""
    node = get_object_or_404(Node, name=name)
    revision = get_object_or_404(Revision, node=node, number=int(number))
    try:
        lifecycle.back_to(revision, actor_of(request))
    except SettingsRefused as error:
        messages.error(request, str(error))
    return redirect("node-settings", node.name)


def effect_of(node: Node, values: Values, hidden: Hidden = NOTHING) -> Effect:
    """`values`: checked and complete."""
    changes = NODE.changes(node.settings, values)

    def shown(setting: Setting, old: Value, new: Value) -> Difference:
        return Difference(setting.label, setting.shown(old), setting.shown(new))

    later = [shown(*one) for one in changes if one[0].applies == "restart"]
    return Effect(
        live=[shown(*one) for one in changes if one[0].applies == "live"],
        later=later,
        engines=running_on(node, hidden) if later else [],
    )


def running_on(node: Node, hidden: Hidden = NOTHING) -> list[Deployment]:
    ranks = node.ranks.filter(replica__status__in=LIVE_REPLICA_STATUSES)
    heads = node.heads.filter(status__in=LIVE_REPLICA_STATUSES)
    pks = {*ranks.values_list("replica__deployment", flat=True)}
    pks |= {*heads.values_list("deployment", flat=True)}
    return list(Deployment.objects.filter(pk__in=pks - hidden.deployments))


def _form(request: HttpRequest, node: Node) -> SettingsForm:
    return SettingsForm(
        NODE,
        node.settings,
        request.POST if request.method == "POST" else None,
        offered={**secret_choices(NODE), **node_choices(node)},
        may_change=may_operate(request),
    )


def _page(
    request: HttpRequest, node: Node, form: SettingsForm, effect: Effect | None = None
) -> HttpResponse:
    rows = node.revisions.order_by("-number")
    return render(
        request,
        "settings/node.html",
        {
            "node": node,
            "form": form,
            "effect": effect,
            "engines": running_on(node, hidden_of(request)),
            "may_change": may_operate(request),
            "changes": history(NODE, rows[: SHOWN + 1])[:SHOWN],
        },
        status=422 if form.errors else 200,
    )
