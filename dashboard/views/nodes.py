"""The boxes."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import lifecycle
from dashboard.access import seen
from dashboard.audit import actor_of, note
from dashboard.errors import StatusConflict
from dashboard.forms.nodes import NodeForm
from dashboard.lifecycle import evacuation
from dashboard.models import Node
from dashboard.sentences import Sentence
from dashboard.views.access import hidden_of, may_operate, operator_required
from dashboard.views.live import live_ranks
from dashboard.views.trail import note_form

RECENT_EVENTS = 20


@login_required
@require_http_methods(["GET", "POST"])
def nodes(request: HttpRequest) -> HttpResponse:
    return _add(request) if request.method == "POST" else _page(request, NodeForm())


@operator_required
def _add(request: HttpRequest) -> HttpResponse:
    form = NodeForm(request.POST)
    if not form.is_valid():
        return _page(request, form)
    try:
        with transaction.atomic():
            entered = form.cleaned_data
            node, token = lifecycle.create_node(entered["name"], entered["address"])
            note_form(request, "node.add", node, form)
    except StatusConflict as error:
        form.add_error("name", str(error))
        return _page(request, form)
    return _token_page(request, node, token)


@operator_required
@require_POST
def node_token(request: HttpRequest, name: str) -> HttpResponse:
    """A fresh token; the old one stops working at once."""
    node = get_object_or_404(Node, name=name)
    with transaction.atomic():
        token = lifecycle.rotate_token(node)
        note(actor_of(request), "node.token", node)
    return _token_page(request, node, token)


@operator_required
@require_POST
def node_act(request: HttpRequest, name: str, action: str) -> HttpResponse:
    """Open it for new ranks, close it, or take it out of the fleet."""
    node = get_object_or_404(Node, name=name)
    by = request.user.get_username()
    if action != "remove":
        with transaction.atomic():
            lifecycle.set_schedulable(node, action == "open", by)
            note(actor_of(request), f"node.{action}", node, before={"open": node.schedulable})
        return redirect("node-detail", name)
    try:
        with transaction.atomic():
            lifecycle.remove_node(node, by)
            note(actor_of(request), "node.remove", name)
    except StatusConflict as error:
        messages.error(request, str(error))
        return redirect("node-detail", name)
    messages.success(request, _("%(node)s is no longer part of the fleet.") % {"node": name})
    return redirect("nodes")


@operator_required
@require_POST
def node_service(request: HttpRequest, name: str, action: str) -> HttpResponse:
    """Move what runs there elsewhere and keep it empty, or take it into service again."""
    node = get_object_or_404(Node, name=name)
    if action == "evacuate":
        why = request.POST.get("why", "").strip()[:200]
        evacuation.evacuate(node, actor_of(request), Sentence(why))
        return redirect("node-detail", name)
    try:
        evacuation.give_back(node, actor_of(request))
    except StatusConflict as error:
        messages.error(request, str(error))
    return redirect("node-detail", name)


@never_cache
def _token_page(request: HttpRequest, node: Node, token: str) -> HttpResponse:
    """The token is in this one answer and nowhere else, so there is no redirect to follow."""
    server = request.build_absolute_uri("/").rstrip("/")
    return render(request, "nodes/token.html", {"node": node, "token": token, "server": server})


@login_required
def node_detail(request: HttpRequest, name: str) -> HttpResponse:
    hidden = hidden_of(request)
    node = get_object_or_404(Node.objects.prefetch_related(live_ranks(hidden)), name=name)
    events = seen(node.events.select_related("deployment"), hidden, node="")
    return render(
        request,
        "nodes/detail.html",
        {
            "node": node,
            "events": events[:RECENT_EVENTS],
            "may_operate": may_operate(request),
            "clearance": evacuation.clear(node) if node.evacuated else None,
            "held": evacuation.held_by(node),
        },
    )


def _page(request: HttpRequest, form: NodeForm) -> HttpResponse:
    hidden = hidden_of(request)
    shown = Node.objects.exclude(pk__in=hidden.nodes)
    return render(
        request,
        "nodes/list.html",
        {
            "nodes": shown.prefetch_related(live_ranks(hidden)),
            "form": form,
            "may_operate": may_operate(request),
        },
        status=422 if form.errors else 200,
    )
