"""One's own API keys: made, shown once, revoked."""

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.access import hidden_routes
from dashboard.audit import actor_of, note
from dashboard.choices import DeploymentStatus
from dashboard.gateway.routes import offered
from dashboard.models import ApiKey
from dashboard.texts import storable
from dashboard.views.access import may_operate, member_required

MAX_NAME = 80


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
            secret = key.issue()
            with transaction.atomic():
                key.save()
                note(actor_of(request), "key.create", key.name, after={"manages": manages})
    context = {
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
]
