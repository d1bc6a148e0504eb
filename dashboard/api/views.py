"""Settings, read and changed by programs as forms do it."""

from typing import Any

import msgspec
from django.conf import settings as django_settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404

from dashboard import panel_settings
from dashboard.api.entry import Refusal, actor, body_of, dry, entry, settings_in
from dashboard.api.schema import CATALOGUES, catalogue_schema, openapi
from dashboard.choices import RevisionOrigin, Role
from dashboard.configuration.declared import Catalogue, Values
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.node import NODE
from dashboard.configuration.panel import PANEL
from dashboard.lifecycle import revisions
from dashboard.lifecycle import settings as lifecycle
from dashboard.models import Deployment, Node, Revision

CHANGING = ("GET", "HEAD", "PATCH")
SHOWN = 100


@entry(Role.VIEWER)
def catalogue(request: HttpRequest, catalogue: str) -> HttpResponse:
    if catalogue not in CATALOGUES:
        raise Http404
    return JsonResponse(catalogue_schema(CATALOGUES[catalogue]))


@entry(Role.VIEWER)
def description(request: HttpRequest) -> HttpResponse:
    return JsonResponse(openapi(django_settings.VERSION))


@entry(Role.VIEWER, methods=CHANGING)
def deployment_settings(request: HttpRequest, name: str) -> HttpResponse:
    deployment = get_object_or_404(Deployment.objects.select_related("model"), name=name)
    if request.method != "PATCH":
        return JsonResponse(_deployment(deployment))
    body = body_of(request)
    values, why = settings_in(body)
    content = body.get("content") or {}
    if not isinstance(content, dict):
        raise Refusal(400, "`content` must be an object.")
    if dry(request):
        return _look(deployment, values, content)
    revision = revisions.propose(
        deployment,
        values,
        content,
        actor=actor(request),
        why=why,
        origin=RevisionOrigin.API,
    )
    job = revisions.apply(revision, actor(request))
    return JsonResponse({"revision": _revision(revision), "job": job.pk if job else None})


def _look(deployment: Deployment, values: dict[str, Any], content: dict[str, Any]) -> HttpResponse:
    """What would change; nothing is kept."""
    before = revisions.current(deployment)
    whole = {**before.content, **content}
    checked = revisions.check(deployment, {**ENGINE.complete(before.values), **values}, whole)
    trial = Revision(deployment=deployment, values=checked, content=whole, replaces=before)
    ahead = revisions.preview(trial)
    return JsonResponse(
        {
            "way": ahead.way.value,
            "changes": [msgspec.to_builtins(change) for change in ahead.changes],
            "why": str(ahead.why),
            "pause_seconds": ahead.pause_seconds,
            "basis": str(ahead.basis),
        }
    )


def _deployment(deployment: Deployment) -> dict[str, Any]:
    return {
        "name": deployment.name,
        "settings": ENGINE.complete(deployment.settings),
        "content": revisions.content_of(deployment),
        "revision": deployment.revision.number if deployment.revision else None,
    }


@entry(Role.VIEWER)
def deployment_revisions(request: HttpRequest, name: str) -> HttpResponse:
    deployment = get_object_or_404(Deployment, name=name)
    rows = deployment.revisions.all()[:SHOWN]
    return JsonResponse({"revisions": [_revision(row) for row in rows]})


@entry(Role.OPERATOR, methods=("POST",))
def deployment_back(request: HttpRequest, name: str, number: int) -> HttpResponse:
    rows = Revision.objects.select_related("deployment__model")
    revision = get_object_or_404(rows, deployment__name=name, number=number)
    job = revisions.back_to(revision, actor(request))
    return JsonResponse({"job": job.pk if job else None})


def _revision(revision: Revision) -> dict[str, Any]:
    revision.refresh_from_db()
    return {
        "number": revision.number,
        "state": revision.state,
        "by": revision.by,
        "at": revision.at.isoformat(),
        "why": revision.why,
        "origin": revision.origin,
        "outcome": str(revision.outcome),
        "settings": revision.values,
        "content": revision.content,
    }


@entry(Role.VIEWER, methods=CHANGING)
def node_settings(request: HttpRequest, name: str) -> HttpResponse:
    node = get_object_or_404(Node, name=name)
    if request.method != "PATCH":
        return JsonResponse({"name": node.name, "settings": NODE.complete(node.settings)})
    values, why = settings_in(body_of(request))
    if dry(request):
        return _differing(NODE, node.settings, lifecycle.check_node(node, values))
    revision = lifecycle.change_node(
        node, values, actor(request), why=why, origin=RevisionOrigin.API
    )
    return JsonResponse({"revision": _revision(revision) if revision else None})


@entry(Role.VIEWER, Role.ADMIN, methods=CHANGING)
def panel(request: HttpRequest) -> HttpResponse:
    if request.method != "PATCH":
        told = {"settings": dict(panel_settings.in_effect())}
        return JsonResponse({**told, "set_by_environment": panel_settings.overridden()})
    values, why = settings_in(body_of(request))
    if dry(request):
        checked = lifecycle.check_panel_values(values)
        return _differing(PANEL, panel_settings.kept(), checked)
    revision = lifecycle.change_panel(values, actor(request), why=why, origin=RevisionOrigin.API)
    return JsonResponse({"revision": _revision(revision) if revision else None})


def _differing(catalogue: Catalogue, before: Values, after: Values) -> HttpResponse:
    changes = [
        {
            "name": setting.name,
            "before": old,
            "after": new,
            "live": setting.applies == "live",
        }
        for setting, old, new in catalogue.changes(before, after)
    ]
    return JsonResponse({"changes": changes})
