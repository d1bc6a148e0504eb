"""Settings, read and changed by programs as forms do it."""

from typing import Any

from django.conf import settings as django_settings
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404

from dashboard import panel_settings
from dashboard.access import visible_deployments, visible_nodes
from dashboard.api import answers
from dashboard.api.description import openapi
from dashboard.api.entry import Refusal, actor, asked, body_of, entry, settings_in
from dashboard.api.schema import CATALOGUES, catalogue_schema
from dashboard.choices import RevisionOrigin, Role
from dashboard.configuration.declared import Catalogue
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.node import NODE
from dashboard.configuration.panel import PANEL
from dashboard.lifecycle import revisions
from dashboard.lifecycle import settings as lifecycle
from dashboard.models import Deployment, Node, Revision

CHANGING = ("GET", "HEAD", "PUT", "PATCH")
SENDING = ("POST",)
SHOWN = 100
API = RevisionOrigin.API


@entry(Role.VIEWER)
def catalogue(request: HttpRequest, catalogue: str) -> HttpResponse:
    if catalogue not in CATALOGUES:
        raise Http404
    return JsonResponse(catalogue_schema(CATALOGUES[catalogue]))


@entry(Role.VIEWER)
def description(request: HttpRequest) -> HttpResponse:
    return JsonResponse(openapi(django_settings.VERSION))


@entry(Role.VIEWER)
def deployments(request: HttpRequest) -> HttpResponse:
    return _named("deployments", visible_deployments(request.user))


@entry(Role.VIEWER)
def nodes(request: HttpRequest) -> HttpResponse:
    return _named("nodes", visible_nodes(request.user))


def _named(what: str, rows: QuerySet[Any]) -> HttpResponse:
    return JsonResponse({what: list(rows.order_by("name").values("name", "status"))})


@entry(Role.VIEWER, methods=CHANGING)
def deployment_settings(request: HttpRequest, name: str) -> HttpResponse:
    deployment = get_object_or_404(Deployment.objects.select_related("model"), name=name)
    if request.method not in ("PUT", "PATCH"):
        return JsonResponse(answers.deployment(deployment))
    values, why = _entered(request, ENGINE)
    content = body_of(request).get("content") or {}
    if not isinstance(content, dict):
        raise Refusal(400, "`content` must be an object.")
    if asked(request, "dry_run", default=False):
        return JsonResponse(_look(deployment, values, content))
    revision = revisions.propose(
        deployment, values, content, actor=actor(request), why=why, origin=API
    )
    if not asked(request, "apply", default=True):
        ahead = answers.preview(revisions.preview(revision))
        told = {"revision": answers.revision(revision), "job": None, "preview": ahead}
        return JsonResponse(told)
    return _applied(request, revision)


def _entered(request: HttpRequest, catalogue: Catalogue) -> tuple[dict[str, Any], str]:
    """PUT says everything: what is left out has its default."""
    values, why = settings_in(body_of(request))
    return {**catalogue.defaults, **values} if request.method == "PUT" else values, why


def _look(deployment: Deployment, values: dict[str, Any], content: dict[str, Any]) -> Any:
    """What would change; nothing is kept."""
    before = revisions.current(deployment)
    whole = {**before.content, **content}
    checked = revisions.check(deployment, {**ENGINE.complete(before.values), **values}, whole)
    trial = Revision(
        deployment=deployment, values=checked, content=revisions.settled(whole), replaces=before
    )
    return answers.preview(revisions.preview(trial))


def _applied(request: HttpRequest, revision: Revision) -> HttpResponse:
    job = revisions.apply(revision, actor(request))
    told = {"revision": answers.revision(revision), "job": job.pk if job else None}
    return JsonResponse(told)


@entry(Role.VIEWER)
def deployment_revisions(request: HttpRequest, name: str) -> HttpResponse:
    return _revisions(get_object_or_404(Deployment, name=name).revisions.all())


def _revisions(rows: QuerySet[Revision]) -> HttpResponse:
    newest = rows.order_by("-number")[:SHOWN]
    return JsonResponse({"revisions": [answers.revision(row) for row in newest]})


@entry(Role.OPERATOR, methods=SENDING)
def deployment_apply(request: HttpRequest, name: str, number: int) -> HttpResponse:
    return _applied(request, _of_deployment(name, number))


@entry(Role.OPERATOR, methods=SENDING)
def deployment_back(request: HttpRequest, name: str, number: int) -> HttpResponse:
    job = revisions.back_to(_of_deployment(name, number), actor(request))
    return JsonResponse({"job": job.pk if job else None})


def _of_deployment(name: str, number: int) -> Revision:
    rows = Revision.objects.select_related("deployment__model")
    return get_object_or_404(rows, deployment__name=name, number=number)


@entry(Role.VIEWER, methods=CHANGING)
def node_settings(request: HttpRequest, name: str) -> HttpResponse:
    node = get_object_or_404(Node, name=name)
    if request.method not in ("PUT", "PATCH"):
        return JsonResponse({"name": node.name, "settings": NODE.complete(node.settings)})
    values, why = _entered(request, NODE)
    if asked(request, "dry_run", default=False):
        checked = lifecycle.check_node(node, values)
        return JsonResponse(answers.changes(NODE, node.settings, checked))
    return _changed(lifecycle.change_node(node, values, actor(request), why=why, origin=API))


def _changed(revision: Revision | None) -> HttpResponse:
    return JsonResponse({"revision": answers.revision(revision) if revision else None})


@entry(Role.VIEWER)
def node_revisions(request: HttpRequest, name: str) -> HttpResponse:
    return _revisions(get_object_or_404(Node, name=name).revisions.all())


@entry(Role.OPERATOR, methods=SENDING)
def node_back(request: HttpRequest, name: str, number: int) -> HttpResponse:
    rows = Revision.objects.select_related("node")
    revision = get_object_or_404(rows, node__name=name, number=number)
    return _changed(lifecycle.back_to(revision, actor(request)))


@entry(Role.VIEWER, Role.ADMIN, methods=CHANGING)
def panel(request: HttpRequest) -> HttpResponse:
    if request.method not in ("PUT", "PATCH"):
        told = {"settings": dict(panel_settings.in_effect())}
        return JsonResponse({**told, "set_by_environment": panel_settings.overridden()})
    values, why = _entered(request, PANEL)
    if asked(request, "dry_run", default=False):
        checked = lifecycle.check_panel_values(values)
        return JsonResponse(answers.changes(PANEL, panel_settings.kept(), checked))
    return _changed(lifecycle.change_panel(values, actor(request), why=why, origin=API))


@entry(Role.VIEWER)
def panel_revisions(request: HttpRequest) -> HttpResponse:
    return _revisions(Revision.objects.filter(deployment=None, node=None))


@entry(Role.ADMIN, Role.ADMIN, methods=SENDING)
def panel_back(request: HttpRequest, number: int) -> HttpResponse:
    revision = get_object_or_404(Revision, deployment=None, node=None, number=number)
    return _changed(lifecycle.back_to(revision, actor(request)))
