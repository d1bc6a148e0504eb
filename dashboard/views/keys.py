"""One's own API keys: made, shown once, revoked."""

from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import panel_settings
from dashboard.access import hidden_routes
from dashboard.audit import actor_of, note
from dashboard.choices import DeploymentStatus
from dashboard.gateway.routes import offered
from dashboard.models import ApiKey, Budget
from dashboard.texts import storable
from dashboard.views.access import may_operate, member_required
from dashboard.views.budgets import all_keys, any_key_revoke, budgets, route_price, used_of

MAX_NAME = 80
MAX_DAYS = 3_660
MAX_HOURS = 720


@member_required
@never_cache
@require_http_methods(["GET", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    """The list; a POST makes a key and shows it this once, in its own response."""
    assert isinstance(request.user, User)
    secret = error = ""
    name = storable(request.POST.get("name", "")).strip()
    if request.method == "POST":
        if not name or len(name) > MAX_NAME:
            error = _("A name of 1 to %s characters helps you know the key again.") % MAX_NAME
        else:
            manages = bool(request.POST.get("manages")) and may_operate(request)
            key = ApiKey(user=request.user, name=name, manages=manages)
            if request.POST.get("scoped"):
                key.asks = bool(request.POST.get("asks"))
                key.reads = bool(request.POST.get("reads"))
            offers = {row.name for row in offered(hidden_routes(request.user))}
            key.routes = sorted(offers & set(request.POST.getlist("routes")))
            days = request.POST.get("days", "")
            if days.isdecimal() and 0 < int(days) <= MAX_DAYS:
                key.expires = timezone.now() + timedelta(days=int(days))
            secret = key.issue()
            with transaction.atomic():
                key.save()
                note(actor_of(request), "key.create", key.name, after=_told(key))
    return _page(request, secret, name, error)


def _told(key: ApiKey) -> dict[str, object]:
    expires = key.expires.isoformat() if key.expires else None
    scopes = {"asks": key.asks, "reads": key.reads, "manages": key.manages}
    return {**scopes, "routes": key.routes, "expires": expires}


def _page(request: HttpRequest, secret: str, name: str, error: str = "") -> HttpResponse:
    assert isinstance(request.user, User)
    hidden = hidden_routes(request.user)
    mine = Q(user=request.user) | Q(key__user=request.user) | Q(team__members=request.user)
    rows = Budget.objects.filter(mine).distinct().select_related("user", "key", "team")
    context = {
        "routes": [row.name for row in offered(hidden)],
        "budgets": [(row, used_of(row)) for row in rows],
        "may_manage": may_operate(request),
        "keys": request.user.api_keys.all(),
        "secret": secret,
        "error": error,
        "name": name,
        "base_url": request.build_absolute_uri("/v1"),
        "metrics_url": request.build_absolute_uri(reverse("metrics")),
        "chat_url": request.build_absolute_uri(reverse("chat-completions")),
        "route": _example_route(hidden_routes(request.user)),
    }
    return render(request, "keys.html", context, status=422 if error else 200)


def _example_route(hidden: frozenset[str]) -> str:
    """A name that works in the examples: one that is ready if there is any."""
    rows = sorted(offered(hidden), key=lambda row: row.status != DeploymentStatus.READY)
    return rows[0].name if rows else "MODEL"


@member_required
@never_cache
@require_POST
def rotate(request: HttpRequest, pk: int) -> HttpResponse:
    """A new secret, shown this once; the old one is good for a grace time."""
    hours = panel_settings.current()["key_grace_hours"]
    assert isinstance(hours, int)
    asked = request.POST.get("hours", "")
    if asked.isdecimal() and int(asked) <= MAX_HOURS:
        hours = int(asked)
    with transaction.atomic():
        rows = ApiKey.objects.select_for_update()
        key = get_object_or_404(rows, user_id=request.user.pk, pk=pk, revoked=None)
        secret = key.rotate(timezone.now() + timedelta(hours=hours))
        key.save(update_fields=["hash", "prefix", "old_hash", "old_until"])
        note(actor_of(request), "key.rotate", key.name, after={"grace_hours": hours})
    return _page(request, secret, key.name)


@member_required
@require_POST
@transaction.atomic
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    assert isinstance(request.user, User)
    key = get_object_or_404(ApiKey, user=request.user, pk=pk, revoked=None)
    key.revoked = timezone.now()
    key.save(update_fields=["revoked"])
    note(actor_of(request), "key.revoke", key.name)
    messages.success(request, _("“%(name)s” is revoked.") % {"name": key.name})
    return redirect("api-keys")


urlpatterns = [
    path("keys/", keys, name="api-keys"),
    path("keys/<int:pk>/revoke/", revoke, name="api-key-revoke"),
    path("keys/<int:pk>/rotate/", rotate, name="api-key-rotate"),
    path("settings/keys/", all_keys, name="all-keys"),
    path("settings/keys/<int:pk>/revoke/", any_key_revoke, name="any-key-revoke"),
    path("settings/budgets/", budgets, name="budgets"),
    path("settings/budgets/price/", route_price, name="route-price"),
]
