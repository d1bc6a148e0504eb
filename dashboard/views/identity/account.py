"""One's own account: password, second factor, sessions, the provider, the language."""

from typing import Any

from allauth.mfa.models import Authenticator
from allauth.socialaccount.providers.base import AuthProcess
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard.access import role_of
from dashboard.audit import actor_of, note
from dashboard.choices import Role
from dashboard.errors import TandemError
from dashboard.forms.identity import CodeForm, FirstCodeForm
from dashboard.identity import factors, sessions
from dashboard.identity import provider as providers
from dashboard.identity.factors import MfaAdapter
from dashboard.views.session import to_provider
from monitoring.vault import SealError

UNREADABLE = gettext_noop(
    "Your second factor cannot be read any more. Ask an administrator to remove it."
)


@login_required
@never_cache
@require_GET
def account(request: HttpRequest) -> HttpResponse:
    return _page(request)


@login_required
@never_cache
@require_POST
@sensitive_post_parameters()
def password(request: HttpRequest) -> HttpResponse:
    user = _user(request)
    form = PasswordChangeForm(user, request.POST)
    if not form.is_valid():
        return _page(request, password_form=form)
    with transaction.atomic():
        form.save()
        note(actor_of(request), "account.password", user)
    update_session_auth_hash(request, user)
    messages.success(request, _("Your password is changed. Your other sessions have ended."))
    return redirect("account")


@login_required
@require_POST
def end_sessions(request: HttpRequest) -> HttpResponse:
    ended = sessions.end_others(_user(request), request, actor_of(request))
    said = ngettext(
        "%(count)s other session has ended.", "%(count)s other sessions have ended.", ended
    )
    messages.success(request, said % {"count": ended})
    return redirect("account")


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def factor(request: HttpRequest) -> HttpResponse:
    """Set one up: scan, type the first code, keep the recovery codes."""
    user = _user(request)
    if factors.has_factor(user):
        return redirect("account")
    secret = factors.begin(request)
    form = FirstCodeForm(request.POST if request.method == "POST" else None, user, secret)
    if form.is_bound and form.is_valid():
        codes = factors.confirm(request, user, secret, actor_of(request))
        return _codes(request, codes, first=True)
    url = MfaAdapter().build_totp_url(user, secret)
    context = {"form": form, "secret": _in_fours(secret), "qr": _drawn(url), "url": url}
    context["required"] = factors.is_missing(request)
    return render(request, "account/factor.html", context, status=422 if form.errors else 200)


@login_required
@never_cache
@require_POST
def fresh_codes(request: HttpRequest) -> HttpResponse:
    form = CodeForm(user=request.user, data=request.POST)
    if not _right(form):
        return _page(request, codes_form=form)
    form.save()
    return _codes(request, factors.fresh_codes(_user(request), actor_of(request)), first=False)


@login_required
@require_POST
def remove_factor(request: HttpRequest) -> HttpResponse:
    """With a code of now: whoever finds an open browser cannot do it."""
    form = CodeForm(user=request.user, data=request.POST)
    if not _right(form):
        return _page(request, remove_form=form)
    factors.remove(_user(request), actor_of(request))
    messages.success(request, _("Your second factor is removed."))
    return redirect("account")


@login_required
@require_POST
def connect(request: HttpRequest) -> HttpResponse:
    """A page that leads on: a form may not lead to another site (CSP)."""
    try:
        answer = to_provider(request, AuthProcess.CONNECT)
    except TandemError as error:
        messages.error(request, str(error))
        return redirect("account")
    if answer.status_code != 302:
        return answer
    return render(request, "account/onwards.html", {"url": answer["Location"]})


@login_required
@require_POST
def disconnect(request: HttpRequest) -> HttpResponse:
    user, provider = _user(request), providers.stored()
    linked = provider and providers.account_at(user, provider)
    if not linked:
        return redirect("account")
    if not user.has_usable_password():
        messages.error(request, _("Your account has no password: you could not sign in any more."))
        return redirect("account")
    with transaction.atomic():
        linked.delete()
        note(actor_of(request), "account.provider-remove", user)
    messages.success(request, _("Your account is no longer tied to the provider."))
    return redirect("account")


def _right(form: CodeForm) -> bool:
    try:
        return bool(form.is_valid())
    except SealError:
        form.add_error(
            None,
            _(UNREADABLE),
        )
        return False


def _page(request: HttpRequest, **forms: Any) -> HttpResponse:
    user = _user(request)
    provider = providers.in_use()
    has_factor = factors.has_factor(user)
    context = {
        "role": (role_of(user) or Role.VIEWER).label,
        "password_form": _password_form(user),
        "has_factor": has_factor,
        "factor_required": factors.wanted_of(user),
        "factor_since": Authenticator.objects.filter(user=user, type="totp").first(),
        "codes_left": factors.codes_left(user) if has_factor else 0,
        "codes_form": CodeForm(user=user),
        "remove_form": CodeForm(user=user),
        "sessions": sessions.sessions_of(user, request),
        "provider": provider,
        "linked": provider and providers.account_at(user, provider),
        **forms,
    }
    return render(request, "account/page.html", context, status=422 if forms else 200)


def _password_form(user: User) -> PasswordChangeForm | None:
    """Nothing where the provider alone lets them in."""
    if not user.has_usable_password():
        return None
    form = PasswordChangeForm(user)
    form.fields["old_password"].widget.attrs.pop("autofocus", None)
    return form


def _codes(request: HttpRequest, codes: list[str], first: bool) -> HttpResponse:
    return render(request, "account/codes.html", {"codes": codes, "first": first})


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _in_fours(secret: str) -> str:
    return " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))


def _drawn(url: str) -> SafeString:
    """The QR code as SVG, of our own making alone."""
    svg: str = MfaAdapter().build_totp_svg(url)
    return mark_safe(svg[svg.index("<svg") :])
