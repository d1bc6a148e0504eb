"""People: who has an account, and what each may do."""

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import people as accounts
from dashboard.access import role_of
from dashboard.audit import actor_of
from dashboard.choices import Role
from dashboard.errors import StatusConflict
from dashboard.views.access import admin_required


class PersonForm(forms.Form):
    name = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    email = forms.EmailField(
        label=_("E-mail"), required=False, widget=forms.EmailInput(attrs={"autocomplete": "off"})
    )
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.MEMBER)


@admin_required
@never_cache
@require_http_methods(["GET", "POST"])
def people(request: HttpRequest) -> HttpResponse:
    form = PersonForm(request.POST if request.method == "POST" else None)
    shown: tuple[User, str] | None = None
    if form.is_bound and form.is_valid():
        entered = form.cleaned_data
        try:
            shown = accounts.create(
                entered["name"], entered["email"], Role(entered["role"]), actor_of(request)
            )
            form = PersonForm()
        except StatusConflict as error:
            form.add_error("name", str(error))
    return _page(request, form, shown)


def _page(
    request: HttpRequest, form: PersonForm, shown: tuple[User, str] | None = None
) -> HttpResponse:
    """`shown`: the one whose first password is in this answer and nowhere else."""
    rows = (
        User.objects.select_related("account")
        .prefetch_related("teams")
        .order_by("-is_active", "username")
    )
    return render(
        request,
        "settings/people.html",
        {
            "form": form,
            "rows": [(user, role_of(user) or _stored(user)) for user in rows],
            "roles": Role.choices,
            "shown": shown,
        },
        status=422 if form.errors else 200,
    )


def _stored(user: User) -> Role:
    """Of an account that is off: what it would be."""
    account = getattr(user, "account", None)
    return Role(account.role) if account is not None else Role.MEMBER


@admin_required
@never_cache
@require_POST
def person_act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    user, actor = get_object_or_404(User, pk=pk), actor_of(request)
    try:
        match action:
            case "role":
                role = request.POST.get("role", "")
                if role in Role.values:
                    accounts.change_role(user, Role(role), actor)
            case "on" | "off":
                accounts.switch(user, actor, on=action == "on")
            case "password":
                password = accounts.reset_password(user, actor)
                return _page(request, PersonForm(), (user, password))
    except StatusConflict as error:
        messages.error(request, str(error))
    return redirect("people")
