"""For administrators: every key, every budget, and what the tokens of routes cost."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard.audit import actor_of, note
from dashboard.gateway.budgets import told
from dashboard.gateway.budgets.admission import LABELS
from dashboard.gateway.budgets.limits import KINDS
from dashboard.gateway.budgets.state import limits_in
from dashboard.models import ApiKey, Budget, Deployment, RoutePrice, Team
from dashboard.views.access import admin_required


def subjects() -> list[tuple[str, str]]:
    users = [(f"user:{row.pk}", row.username) for row in User.objects.order_by("username")]
    teams = [(f"team:{row.pk}", row.name) for row in Team.objects.all()]
    keys = [
        (f"key:{row.pk}", f"{row} · {row.user}")
        for row in ApiKey.objects.filter(revoked=None).select_related("user")
    ]
    return [*users, *teams, *keys]


class BudgetForm(forms.Form):
    subject = forms.ChoiceField(label=gettext_lazy("User, team or key"), choices=subjects)
    requests_minute = forms.IntegerField(min_value=0, max_value=10**12, required=False)
    requests_day = forms.IntegerField(min_value=0, max_value=10**12, required=False)
    tokens_minute = forms.IntegerField(min_value=0, max_value=10**12, required=False)
    tokens_day = forms.IntegerField(min_value=0, max_value=10**12, required=False)
    money_month = forms.DecimalField(min_value=0, max_digits=12, decimal_places=2, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for kind, label in LABELS.items():
            self.fields[kind].label = label


class PriceForm(forms.Form):
    route = forms.ChoiceField(
        label=gettext_lazy("Model"),
        choices=lambda: [(row.name, row.name) for row in Deployment.objects.order_by("name")],
    )
    prompt = forms.DecimalField(
        label=gettext_lazy("A million prompt tokens"),
        min_value=0,
        max_digits=10,
        decimal_places=4,
    )
    completion = forms.DecimalField(
        label=gettext_lazy("A million completion tokens"),
        min_value=0,
        max_digits=10,
        decimal_places=4,
    )


@admin_required
@require_http_methods(["GET", "POST"])
def budgets(request: HttpRequest) -> HttpResponse:
    """A POST sets the whole budget of one; without any limit it is removed."""
    form = BudgetForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        _set(request, form.cleaned_data)
        return redirect("budgets")
    return _page(request, form, PriceForm())


@admin_required
@require_POST
def route_price(request: HttpRequest) -> HttpResponse:
    form = PriceForm(request.POST)
    if not form.is_valid():
        return _page(request, BudgetForm(), form)
    new = form.cleaned_data
    with transaction.atomic():
        old = RoutePrice.objects.filter(route=new["route"]).first()
        before = {"prompt": str(old.prompt), "completion": str(old.completion)} if old else None
        values = {name: new[name] for name in ("prompt", "completion")}
        RoutePrice.objects.update_or_create(route=new["route"], defaults=values)
        after = {name: str(value) for name, value in values.items()}
        note(actor_of(request), "price.set", new["route"], before=before, after=after)
    return redirect("budgets")


@admin_required
@require_GET
def all_keys(request: HttpRequest) -> HttpResponse:
    rows = ApiKey.objects.select_related("user")
    return render(request, "settings/keys.html", {"keys": rows})


@admin_required
@require_POST
@transaction.atomic
def any_key_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    key = get_object_or_404(ApiKey, pk=pk, revoked=None)
    key.revoked = timezone.now()
    key.save(update_fields=["revoked"])
    note(actor_of(request), "key.revoke", key.name, after={"owner": key.user.get_username()})
    messages.success(request, _("“%(name)s” is revoked.") % {"name": key.name})
    return redirect("all-keys")


def used_of(row: Budget) -> list[dict[str, Any]]:
    """Each limit, and what of it is used."""
    now, found = timezone.now(), []
    for limit in limits_in(row):
        scale = 1_000_000 if KINDS[limit.kind][0] == "money" else 1
        used = told.used(limit, now) / scale
        most = limit.most / scale
        found.append({"label": LABELS[limit.kind], "used": f"{used:g}", "most": f"{most:g}"})
    return found


@transaction.atomic
def _set(request: HttpRequest, new: dict[str, Any]) -> None:
    kind, _colon, pk = new["subject"].partition(":")
    of = {f"{kind}_id": pk}
    old = Budget.objects.filter(**of).first()
    values = {name: new[name] for name in KINDS}
    after = {name: str(value) for name, value in values.items() if value is not None}
    before = {name: str(getattr(old, name)) for name in KINDS if old and getattr(old, name)}
    if after:
        row, _made = Budget.objects.update_or_create(**of, defaults=values)
        name = str(row)
    elif old is not None:
        name = str(old)
        old.delete()
    else:
        return
    note(actor_of(request), "budget.set", f"{kind} {name}", before=before, after=after)
    transaction.on_commit(told.recount)


def _page(request: HttpRequest, form: BudgetForm, price: PriceForm) -> HttpResponse:
    rows = Budget.objects.select_related("user", "key", "team")
    context = {
        "form": form,
        "price_form": price,
        "budgets": [(row, used_of(row)) for row in rows],
        "prices": RoutePrice.objects.all(),
    }
    return render(
        request,
        "settings/budgets.html",
        context,
        status=422 if form.errors or price.errors else 200,
    )
