"""The whole fleet on one page."""

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from dashboard.access import may, seen
from dashboard.choices import (
    ANSWERING_STATUSES,
    DeploymentStatus,
    NodeStatus,
    RankStatus,
    Role,
)
from dashboard.models import ApiKey, Conversation, Deployment, Event, Model, Node, Rank
from dashboard.views.access import hidden_of, may_operate
from dashboard.views.live import live_ranks, with_live_replica
from monitoring.scopes import Hidden

RECENT_EVENTS = 8


@dataclass(frozen=True)
class Hint:
    """One step of getting started."""

    done: bool
    text: str
    url: str


@login_required
def overview(request: HttpRequest) -> HttpResponse:
    hidden = hidden_of(request)
    deployments = with_live_replica(Deployment.objects.exclude(pk__in=hidden.deployments))
    nodes = Node.objects.exclude(pk__in=hidden.nodes).prefetch_related(live_ranks(hidden))
    events = seen(Event.objects.select_related("deployment", "node"), hidden)
    return render(
        request,
        "overview.html",
        {
            "deployments": deployments,
            "nodes": nodes,
            "events": events[:RECENT_EVENTS],
            "counts": _counts(hidden),
            "hints": _hints(request, hidden),
            "may_operate": may_operate(request),
        },
    )


def _counts(hidden: Hidden) -> dict[str, int]:
    nodes = Node.objects.exclude(pk__in=hidden.nodes).aggregate(
        nodes=Count("pk"), online=Count("pk", filter=Q(status=NodeStatus.ONLINE))
    )
    running = Deployment.objects.filter(wanted=True).exclude(pk__in=hidden.deployments)
    deployments = running.aggregate(
        deployments=Count("pk"), ready=Count("pk", filter=Q(status=DeploymentStatus.READY))
    )
    live = seen(Rank.objects.filter(replica__ended_at=None), hidden, "node", "replica__deployment")
    ranks = live.aggregate(
        ranks=Count("pk"), working=Count("pk", filter=Q(status=RankStatus.READY))
    )
    return {**nodes, **deployments, **ranks}


def _hints(request: HttpRequest, hidden: Hidden) -> list[Hint]:
    """What is left to do before a program gets its first answer, of what the person may do."""
    hints = _to_deploy(hidden) if may_operate(request) else []
    if may(request.user, Role.MEMBER):
        hints += _to_ask(request.user.pk)
    return [] if all(hint.done for hint in hints) else hints


def _to_deploy(hidden: Hidden) -> list[Hint]:
    answering = Deployment.objects.filter(status__in=ANSWERING_STATUSES)
    return [
        Hint(
            Node.objects.filter(status=NodeStatus.ONLINE).exclude(pk__in=hidden.nodes).exists(),
            _("Connect a node"),
            reverse("nodes"),
        ),
        Hint(Model.objects.exists(), _("Import a model"), reverse("models")),
        Hint(
            answering.exclude(pk__in=hidden.deployments).exists(),
            _("Deploy it over your nodes"),
            reverse("deployments"),
        ),
    ]


def _to_ask(user: int | None) -> list[Hint]:
    return [
        Hint(
            Conversation.objects.filter(user=user).exists(),
            _("Say something in the playground"),
            reverse("chat"),
        ),
        Hint(
            ApiKey.objects.filter(user=user, revoked=None).exists(),
            _("Make an API key for your own program"),
            reverse("api-keys"),
        ),
    ]
