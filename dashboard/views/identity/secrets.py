"""Stored secrets: added, replaced, removed, never shown."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard import resealing
from dashboard import secrets as store
from dashboard.audit import actor_of
from dashboard.forms.identity import SecretForm
from dashboard.models import Secret
from dashboard.views.access import admin_required
from monitoring import vault


@admin_required
@never_cache
@require_GET
def secrets(request: HttpRequest) -> HttpResponse:
    rows = [
        {"secret": row, "users": list(store.users_of(row)), "readable": store.readable(row)}
        for row in Secret.objects.select_related("by")
    ]
    outcome = resealing.look()
    context = {
        "rows": rows,
        "place": vault.place(),
        "old": sum(outcome.old.values()),
        "current": sum(outcome.current.values()),
        "unreadable": outcome.unreadable,
    }
    return render(request, "settings/secrets.html", context)


@sensitive_post_parameters("value")
@admin_required
@never_cache
@require_http_methods(["GET", "POST"])
def secret_edit(request: HttpRequest, name: str = "") -> HttpResponse:
    """Add one, or put another value in the place of one that is there."""
    row = get_object_or_404(Secret, name=name) if name else Secret()
    form = SecretForm(request.POST if request.method == "POST" else None, instance=row)
    if form.is_bound and form.is_valid():
        entered = form.cleaned_data
        store.keep(entered["name"], entered["kind"], entered["value"], actor_of(request))
        messages.success(request, _("“%(name)s” is stored.") % {"name": entered["name"]})
        return redirect("secrets")
    context = {"form": form, "secret": row if row.pk else None}
    return render(request, "settings/secret.html", context, status=422 if form.errors else 200)


@admin_required
@require_POST
def secret_remove(request: HttpRequest, name: str) -> HttpResponse:
    try:
        store.remove(get_object_or_404(Secret, name=name), actor_of(request))
    except store.SecretError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("“%(name)s” is removed.") % {"name": name})
    return redirect("secrets")
