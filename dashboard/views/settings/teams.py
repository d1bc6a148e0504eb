"""Teams: who is in them, and which deployments and nodes only they see."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import teams as lifecycle
from dashboard.audit import actor_of
from dashboard.errors import StatusConflict
from dashboard.models import Deployment, Node, Team
from dashboard.views.access import admin_required


class NewTeamForm(forms.Form):
    name = forms.SlugField(
        label=gettext_lazy("Name"),
        max_length=63,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class TeamForm(forms.Form):
    members: Any = forms.ModelMultipleChoiceField(
        User.objects.order_by("username"),
        label=gettext_lazy("Members"),
        required=False,
        widget=forms.CheckboxSelectMultiple(),
    )
    deployments: Any = forms.ModelMultipleChoiceField(
        Deployment.objects.order_by("name"),
        label=gettext_lazy("Deployments"),
        required=False,
        widget=forms.CheckboxSelectMultiple(),
    )
    nodes: Any = forms.ModelMultipleChoiceField(
        Node.objects.order_by("name"),
        label=gettext_lazy("Nodes"),
        required=False,
        widget=forms.CheckboxSelectMultiple(),
    )


@admin_required
@require_http_methods(["GET", "POST"])
def teams(request: HttpRequest) -> HttpResponse:
    form = NewTeamForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            team = lifecycle.create(form.cleaned_data["name"], actor_of(request))
        except StatusConflict as error:
            form.add_error("name", str(error))
        else:
            return redirect("team", team.pk)
    rows = [(team, lifecycle.told(team)) for team in Team.objects.all()]
    return render(
        request,
        "settings/teams.html",
        {"form": form, "teams": rows},
        status=422 if form.errors else 200,
    )


@admin_required
@require_http_methods(["GET", "POST"])
def team(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Team, pk=pk)
    if request.method == "POST":
        form = TeamForm(request.POST)
        if form.is_valid():
            chosen = form.cleaned_data
            content = lifecycle.Content(
                list(chosen["members"]), list(chosen["deployments"]), list(chosen["nodes"])
            )
            lifecycle.fill(row, content, actor_of(request))
            messages.success(request, _("%(team)s is saved.") % {"team": row.name})
            return redirect("teams")
    else:
        form = TeamForm(
            initial={
                "members": row.members.all(),
                "deployments": row.deployments.all(),
                "nodes": row.nodes.all(),
            }
        )
    return render(
        request,
        "settings/team.html",
        {"team": row, "form": form},
        status=422 if form.errors else 200,
    )


@admin_required
@require_POST
def team_remove(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Team, pk=pk)
    lifecycle.remove(row, actor_of(request))
    messages.success(request, _("%(team)s is removed.") % {"team": row.name})
    return redirect("teams")
