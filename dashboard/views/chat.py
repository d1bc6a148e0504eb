"""The playground: conversations, their messages and what can answer."""

from typing import Any

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from dashboard import conversations
from dashboard.choices import ANSWERING_REPLICA_STATUSES, MessageRole
from dashboard.gateway.routes import loading_progress
from dashboard.models import Conversation, Deployment, Message
from dashboard.texts import storable
from dashboard.views.access import hidden_of, member_required
from dashboard.views.live import PRIMARIES_FIRST


@member_required
@require_GET
def chat(request: HttpRequest, pk: int | None = None) -> HttpResponse:
    conversation = _own(request, pk) if pk else None
    if conversation is not None:
        conversations.close_abandoned(conversation)
    rows = list(conversation.messages.all()) if conversation else []
    routes = [_described(row) for row in _deployments(request)]
    latest = conversations.search(_user(request))
    context = {
        "conversation": conversation,
        "rows": [row for row in rows if row.role != MessageRole.SYSTEM],
        "system": next((row.content for row in rows if row.role == MessageRole.SYSTEM), ""),
        "conversations": latest,
        "routes": routes,
        "route": _chosen(routes, conversation, latest.first()),
        "examples": _examples(),
    }
    return render(request, "chat/page.html", context)


@member_required
@require_GET
def conversation_list(request: HttpRequest) -> HttpResponse:
    words = storable(request.GET.get("q", "")).strip()
    found = conversations.search(_user(request), words)
    current = request.GET.get("current", "")
    context = {"conversations": found, "words": words, "current": current}
    return render(request, "chat/_list.html", context)


@member_required
@require_GET
def message(request: HttpRequest, pk: int, message_pk: int) -> HttpResponse:
    """One message as it is now, for a page that lost its socket."""
    conversation = _own(request, pk)
    conversations.close_abandoned(conversation)
    row = get_object_or_404(Message, conversation=conversation, pk=message_pk)
    return render(request, "chat/_message.html", {"message": row})


@member_required
@require_GET
def routes(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"routes": [_described(row) for row in _deployments(request)]})


@member_required
@require_POST
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    conversation = _own(request, pk)
    if title := conversations.title_of(request.POST.get("title", "")):
        # Not `save`: a new name does not make an old conversation a recent one.
        Conversation.objects.filter(pk=conversation.pk).update(title=title)
    return redirect("conversation", pk)


@member_required
@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    _own(request, pk).delete()
    return redirect("chat")


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _own(request: HttpRequest, pk: int) -> Conversation:
    try:
        return conversations.of(_user(request), pk)
    except conversations.ConversationMissing as error:
        raise Http404(str(error)) from error


def _deployments(request: HttpRequest) -> list[Deployment]:
    rows = Deployment.objects.exclude(pk__in=hidden_of(request).deployments)
    return list(rows.select_related("model"))


def _described(deployment: Deployment) -> dict[str, Any]:
    """A route for the selector, with the words for when it cannot answer."""
    ready = deployment.answers
    progress = None if ready else loading_progress(deployment)
    answering = deployment.replicas.filter(status__in=ANSWERING_REPLICA_STATUSES)
    replica = answering.order_by(*PRIMARIES_FIRST).first() if ready else None
    ranks = list(replica.ranks.select_related("node")) if replica else []
    context = {"deployment": deployment, "ready": ready, "progress": progress, "ranks": ranks}
    shape = deployment.model.shape
    return {
        "name": deployment.name,
        "label": f"{deployment.name} · {deployment.get_status_display()}",
        "ready": ready,
        "context_length": deployment.max_model_len or shape.context_length,
        "html": render_to_string("chat/_route.html", context),
    }


def _chosen(
    routes: list[dict[str, Any]], conversation: Conversation | None, latest: Conversation | None
) -> str:
    """The conversation's own route, else the one used last or the first that can answer."""
    names = [route["name"] for route in routes]
    if conversation is not None and conversation.route in names:
        return conversation.route
    ready = [route["name"] for route in routes if route["ready"]]
    if latest is not None and latest.route in ready:
        return latest.route
    return next(iter([*ready, *names]), "")


def _examples() -> list[str]:
    return [
        _("Explain why two small computers can run one large model together."),
        _("Write a short poem about a quiet office."),
        _("Give me three names for a team's shared coffee machine."),
        _("What is the difference between a list and a tuple in Python?"),
    ]


urlpatterns = [
    path("chat/", chat, name="chat"),
    path("chat/conversations/", conversation_list, name="chat-conversations"),
    path("chat/routes/", routes, name="chat-routes"),
    path("chat/<int:pk>/", chat, name="conversation"),
    path("chat/<int:pk>/rename/", rename, name="conversation-rename"),
    path("chat/<int:pk>/delete/", delete, name="conversation-delete"),
    path("chat/<int:pk>/messages/<int:message_pk>/", message, name="chat-message"),
]
