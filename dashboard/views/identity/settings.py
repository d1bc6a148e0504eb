"""How people sign in: the panel's switches and the identity provider."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard.audit import actor_of, note
from dashboard.configuration.declared import SettingsRefused
from dashboard.forms.identity import ProviderForm
from dashboard.identity import discovery
from dashboard.identity import provider as providers
from dashboard.identity.errors import ProviderError
from dashboard.lifecycle import settings as lifecycle
from dashboard.models import IdentityProvider
from dashboard.views.access import admin_required

SHOWN = (
    "label", "issuer", "client_id", "scopes", "domains", "create", "groups_claim", "groups",
    "default_role", "own_factor",
)  # fmt: skip


@admin_required
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in_settings(request: HttpRequest) -> HttpResponse:
    row = providers.stored() or IdentityProvider()
    before = _shown(row) if row.pk else None
    form = ProviderForm(request.POST if request.method == "POST" else None, instance=row)
    if not form.is_bound:
        return _page(request, form)
    if not form.is_valid():
        return _page(request, form)
    if "test" in request.POST:
        return _page(request, form, tested=True)
    if not _save(request, form, before):
        return _page(request, form)
    messages.success(request, _("Saved, and in effect within a few seconds."))
    return redirect("sign-in-settings")


@transaction.atomic
def _save(request: HttpRequest, form: ProviderForm, before: dict[str, object] | None) -> bool:
    actor = actor_of(request)
    try:
        lifecycle.change_panel(form.flags, actor)
    except SettingsRefused as error:
        for name, sentence in error.errors.items():
            form.add_error(name if name in form.fields else None, str(sentence))
        return False
    row = form.save()
    if before != _shown(row) or "secret" in form.changed_data or "ca" in form.changed_data:
        providers.changed()
        note(actor, "sign-in.provider", row, before=before, after=_shown(row))
    return True


def _shown(row: IdentityProvider) -> dict[str, object]:
    """Without its secret, which is only named."""
    held = {name: getattr(row, name) for name in SHOWN}
    return {**held, "secret": row.secret.name if row.secret else None}


def _page(request: HttpRequest, form: ProviderForm, tested: bool = False) -> HttpResponse:
    provider = providers.in_use()
    context = {
        "form": form,
        "provider": provider,
        "local_open": providers.local_open(),
        "administrator_came": bool(provider and providers.administrators_through(provider)),
        "callback_url": request.build_absolute_uri(reverse("oidc-callback")),
        **(_tested(form) if tested else {}),
    }
    status = 422 if form.is_bound and form.errors else 200
    return render(request, "settings/sign_in.html", context, status=status)


def _tested(form: ProviderForm) -> dict[str, object]:
    """What the provider answers now, with what stands in the form; nothing is saved."""
    issuer = form.cleaned_data["issuer"]
    if not issuer:
        return {"test_error": _("Enter the issuer first.")}
    try:
        return {"found": discovery.test(issuer, form.cleaned_data["ca"])}
    except ProviderError as error:
        return {"test_error": str(error)}
