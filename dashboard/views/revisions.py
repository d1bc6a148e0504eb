"""A deployment's settings: changed by proposing a revision, looking at it, and applying it."""

import re

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.audit import actor_of
from dashboard.choices import JobKind, RevisionState
from dashboard.configuration.declared import SettingsRefused
from dashboard.errors import StatusConflict
from dashboard.forms.revisions import RevisionForm
from dashboard.lifecycle import revisions as lifecycle
from dashboard.lifecycle.preview import differences, side_by_side
from dashboard.models import Deployment, Revision
from dashboard.views.access import may_operate, operator_required
from dashboard.views.beginning import beginning

SHOWN = 50


def _deployment(name: str) -> Deployment:
    return get_object_or_404(Deployment.objects.select_related("model", "revision"), name=name)


def _revision(deployment: Deployment, number: int) -> Revision:
    rows = deployment.revisions.select_related("deployment__model", "replaces")
    return get_object_or_404(rows, number=number)


@login_required
@require_http_methods(["GET", "POST"])
def deployment_settings(request: HttpRequest, name: str) -> HttpResponse:
    deployment = _deployment(name)
    if request.method == "POST":
        return _propose(request, deployment)
    return _form_page(request, deployment, _form(request, deployment))


@operator_required
def _propose(request: HttpRequest, deployment: Deployment) -> HttpResponse:
    form = _form(request, deployment)
    if not form.is_valid():
        return _form_page(request, deployment, form, 422)
    try:
        revision = lifecycle.propose(
            deployment, form.values, form.content, actor=actor_of(request), why=form.why
        )
    except SettingsRefused as error:
        form.refuse(error.errors)
        return _form_page(request, deployment, form, 422)
    return redirect("deployment-revision", deployment.name, revision.number)


def _form(request: HttpRequest, deployment: Deployment) -> RevisionForm:
    begun = beginning(request, deployment).values
    return RevisionForm(request, deployment, begun, may_change=may_operate(request))


def _form_page(
    request: HttpRequest, deployment: Deployment, form: RevisionForm, status: int = 200
) -> HttpResponse:
    return render(
        request,
        "deployments/settings.html",
        {
            "deployment": deployment,
            "form": form.settings,
            "model": form.model,
            "fallback": form.fallback,
            "may_change": may_operate(request),
            "revisions": deployment.revisions.all()[:5],
            "begun": beginning(request, deployment),
        },
        status=status,
    )


@login_required
def deployment_revisions(request: HttpRequest, name: str) -> HttpResponse:
    deployment = _deployment(name)
    rows = list(deployment.revisions.select_related("replaces", "deployment__model")[:SHOWN])
    return render(
        request,
        "deployments/revisions.html",
        {
            "deployment": deployment,
            "rows": [(row, differences(row)) for row in rows],
            "may_change": may_operate(request),
        },
    )


@login_required
def deployment_revision(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """What it changes, what applying it would do, how it went."""
    deployment = _deployment(name)
    revision = _revision(deployment, number)
    against = request.GET.get("against", "")
    other = (
        _revision(deployment, int(against))
        if re.fullmatch(r"[0-9]{1,9}", against)
        else revision.replaces
    )
    waiting = revision.state in (RevisionState.PROPOSED, RevisionState.FAILED)
    fresh = revision.replaces_id == deployment.revision_id
    return render(
        request,
        "deployments/revision.html",
        {
            "deployment": deployment,
            "revision": revision,
            "other": other,
            "rows": side_by_side(revision, other),
            "preview": lifecycle.preview(revision) if waiting and fresh else None,
            "outdated": waiting and not fresh,
            "job": deployment.jobs.filter(revision=revision, kind=JobKind.CHANGE).first(),
            "others": deployment.revisions.exclude(pk=revision.pk)[:SHOWN],
            "may_change": may_operate(request),
        },
    )


@operator_required
@require_POST
def revision_act(request: HttpRequest, name: str, number: int, action: str) -> HttpResponse:
    """Apply it, or go back to it."""
    deployment = _deployment(name)
    revision = _revision(deployment, number)
    try:
        if action == "apply":
            job = lifecycle.apply(revision, actor_of(request))
        else:
            job = lifecycle.back_to(revision, actor_of(request))
    except (SettingsRefused, StatusConflict) as error:
        messages.error(request, str(error))
        return redirect("deployment-revision", name, number)
    if job is None:
        messages.success(request, _("In use from the next start."))
    return redirect("deployment-detail", name)
