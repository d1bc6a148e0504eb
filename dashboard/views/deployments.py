"""What runs, and the buttons that change it."""

from collections.abc import Callable, Sequence

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import lifecycle
from dashboard.access import seen
from dashboard.audit import actor_of, note
from dashboard.choices import DeploymentStatus, JobKind, ReplicaRole
from dashboard.errors import TandemError
from dashboard.forms.deployments import DeploymentForm
from dashboard.forms.fallback import FallbackForm
from dashboard.models import Deployment, Job, LogLine, Model
from dashboard.texts import storable
from dashboard.views.access import hidden_of, may_operate, operator_required
from dashboard.views.beginning import Beginning, beginning
from dashboard.views.live import with_live_replica
from dashboard.views.plan import Launch, draw_launches
from dashboard.views.trail import note_form

RECENT_EVENTS = 20
RECENT_JOBS = 6
LOG_LINES = 300

ACTIONS: dict[str, Callable[[Deployment, str], object]] = {
    "deploy": lifecycle.request_deploy,
    "stop": lifecycle.request_stop,
    "restart": lifecycle.request_restart,
    "return": lifecycle.request_return,
    "delete": lifecycle.delete_deployment,
}


@login_required
def deployments(request: HttpRequest) -> HttpResponse:
    return render(
        request,
        "deployments/list.html",
        {
            "deployments": with_live_replica(
                Deployment.objects.exclude(pk__in=hidden_of(request).deployments)
            ),
            "may_operate": may_operate(request),
            "has_models": Model.objects.exists(),
        },
    )


@operator_required
@require_http_methods(["GET", "POST"])
def deployment_new(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        form, fallback = DeploymentForm(request.POST), FallbackForm(request.POST)
        if form.is_valid() and fallback.is_valid() and fallback.check(form.instance):
            with transaction.atomic():
                deployment = _create(form, fallback)
                note_form(request, "deployment.create", deployment, form)
            return _act(request, deployment, "deploy")
    else:
        form, fallback = DeploymentForm(initial=_suggestion(request)), FallbackForm()
    return render(
        request,
        "deployments/new.html",
        {
            "form": form,
            "fallback": fallback,
            "models": Model.objects.all(),
            "begun": _beginning(request, form),
        },
        status=422 if form.errors or fallback.errors else 200,
    )


def _create(form: DeploymentForm, fallback: FallbackForm) -> Deployment:
    deployment = form.save()
    fallback.keep(deployment)
    return deployment


@login_required
def deployment_detail(request: HttpRequest, name: str) -> HttpResponse:
    deployment = get_object_or_404(Deployment.objects.select_related("model"), name=name)
    jobs = list(deployment.jobs.prefetch_related("steps")[:RECENT_JOBS])
    latest = _latest(jobs)
    launches = draw_launches(deployment)
    return render(
        request,
        "deployments/detail.html",
        {
            "deployment": deployment,
            "launches": launches,
            "live": any(launch.replica for launch in launches),
            "fallback": deployment.fallback_or_none,
            "may_return": _may_return(deployment, launches),
            "job": latest,
            "earlier_jobs": [job for job in jobs if job != latest],
            "log": _log(deployment, latest),
            "events": seen(
                deployment.events.select_related("node"), hidden_of(request), deployment=""
            )[:RECENT_EVENTS],
            "api_url": request.build_absolute_uri(reverse("chat-completions")),
            "may_operate": may_operate(request),
        },
    )


def _latest(jobs: Sequence[Job]) -> Job | None:
    """The newest, but a change or a move rather than what it had done for it."""
    for place, job in enumerate(jobs):
        if job.kind in (JobKind.CHANGE, JobKind.MOVE):
            over, newer = job.finished_at, jobs[:place]
            theirs = [one.automatic and (over is None or one.created < over) for one in newer]
            return job if all(theirs) else jobs[0]
    return jobs[0] if jobs else None


@operator_required
@require_POST
def deployment_act(request: HttpRequest, name: str, action: str) -> HttpResponse:
    return _act(request, get_object_or_404(Deployment, name=name), action)


def _act(request: HttpRequest, deployment: Deployment, action: str) -> HttpResponse:
    try:
        before = {"status": deployment.status}
        with transaction.atomic():
            ACTIONS[action](deployment, request.user.get_username())
            note(actor_of(request), f"deployment.{action}", deployment.name, before=before)
    except TandemError as error:
        messages.error(request, str(error))
    if Deployment.objects.filter(pk=deployment.pk).exists():
        return redirect("deployment-detail", deployment.name)
    return redirect("deployments")


def _suggestion(request: HttpRequest) -> dict[str, object]:
    """A model that was asked for by name, else the only one there is, and how to run it."""
    model = _model(request)
    if model is None:
        return {}
    name = "" if Deployment.objects.filter(name=model.name).exists() else model.name
    return {"model": model, "name": name, **beginning(request, _blank(model)).values}


def _model(request: HttpRequest) -> Model | None:
    wanted = storable(request.GET.get("model", ""))
    asked = Model.objects.filter(name=wanted)
    if wanted.isascii() and wanted.isdecimal() and not asked:  # As the form's own field has it.
        asked = Model.objects.filter(pk=int(wanted[:18]))
    models = list(asked) or list(Model.objects.all()[:2])
    return models[0] if len(models) == 1 else None


def _blank(model: Model) -> Deployment:
    return Deployment(model=model, settings={"tp": min(2, model.shape.num_kv_heads)})


def _beginning(request: HttpRequest, form: DeploymentForm) -> Beginning | None:
    """None where presets have no model to be fitted to."""
    model = None if form.is_bound else _model(request)
    return beginning(request, _blank(model)) if model is not None else None


def _may_return(deployment: Deployment, launches: list[Launch]) -> bool:
    """Whether the fallback answers alone, so that somebody can ask for the deployment itself."""
    roles = {launch.replica.role for launch in launches if launch.replica}
    return deployment.status == DeploymentStatus.DEGRADED and roles == {ReplicaRole.FALLBACK}


def _log(deployment: Deployment, job: Job | None) -> list[LogLine]:
    """The last lines of what runs, or else of what ran last; oldest first."""
    living = list(deployment.replicas.filter(ended_at=None))
    replicas = living or list(deployment.replicas.order_by("-pk")[:1])
    mine = Q(launch__in=[replica.launch for replica in replicas])
    if job:
        mine |= Q(job=job)
    return list(LogLine.objects.filter(mine).order_by("-pk")[:LOG_LINES])[::-1]
