"""Signing in and out: a password, a code, or the identity provider."""

from typing import Any

from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from allauth.account.stages import LoginStageController
from allauth.core import ratelimit
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.stages import AuthenticateStage
from allauth.socialaccount.providers.base import AuthProcess
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.signals import user_login_failed
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from dashboard.errors import TandemError
from dashboard.identity import provider as providers
from dashboard.identity.adapters import TOO_MANY
from dashboard.identity.oidc import OidcAdapter
from dashboard.identity.passwords import PasswordForm
from monitoring.vault import SealError


class SignIn(LoginView):
    template_name = "sign_in.html"
    authentication_form = PasswordForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not ratelimit.consume(request, action="login"):
            form = self.get_form_class()(request)
            context = self.get_context_data(form=form, refused=str(TOO_MANY))
            return self.render_to_response(context, status=429)
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """A second factor follows, where there is one; else the session begins."""
        user = form.get_user()
        login = Login(user=user, redirect_url=self.get_success_url())
        answer: HttpResponse = perform_password_login(
            self.request, {"username": user.get_username()}, login
        )
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        more = {"provider": providers.in_use(), "local_open": providers.local_open()}
        return super().get_context_data(**{**more, **kwargs})


sign_in = SignIn.as_view()
sign_out = LogoutView.as_view()


@sensitive_post_parameters("code")
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in_code(request: HttpRequest) -> HttpResponse:
    """The second step: a code of the authenticator app, or a recovery code."""
    stage = LoginStageController.enter(request, AuthenticateStage.key)
    if stage is None:
        return redirect("sign-in")
    user = stage.login.user
    form = AuthenticateForm(user=user, data=request.POST if request.method == "POST" else None)
    try:
        if form.is_bound and form.is_valid():
            form.save()
            answer: HttpResponse = stage.exit()
            return answer
    except SealError:
        form.add_error(
            None,
            _(
                "Your second factor cannot be read: the key that it was sealed with is gone. Ask "
                "an administrator to remove it, then set it up again."
            ),
        )
    if form.is_bound:
        user_login_failed.send(
            sender=__name__, credentials={"username": user.get_username()}, request=request
        )
    return render(request, "sign_in_code.html", {"form": form}, status=422 if form.errors else 200)


@require_GET
@never_cache
def oidc_begin(request: HttpRequest) -> HttpResponse:
    """Off to the provider."""
    try:
        return to_provider(request, AuthProcess.LOGIN)
    except TandemError as error:
        messages.error(request, str(error))
        return redirect("sign-in")


def to_provider(request: HttpRequest, process: str) -> HttpResponse:
    """A redirect that carries state, nonce and PKCE challenge. Raises TandemError."""
    row = providers.in_use()
    if row is None:
        raise TandemError(_("No identity provider is set up here."))
    provider = OidcAdapter(request, row).get_provider()
    answer: HttpResponse = provider.redirect(request, process, next_url=_next(request))
    return answer


@require_GET
@never_cache
def oidc_callback(request: HttpRequest) -> HttpResponse:
    """Back from the provider, with a code or an error."""
    row = providers.in_use()
    if row is None:
        messages.error(request, _("No identity provider is set up here."))
        return redirect("sign-in")
    try:
        answer: HttpResponse = OAuth2CallbackView.adapter_view(OidcAdapter(request, row))(request)
    except TandemError as error:
        messages.error(request, str(error))
        return redirect("sign-in")
    except (KeyError, TypeError, ValueError):
        messages.error(request, _("The provider’s answer is not OpenID Connect."))
        return redirect("sign-in")
    return answer


def _next(request: HttpRequest) -> str:
    """Where they wanted to go; never to another site."""
    view = LoginView()
    view.setup(request)
    return view.get_redirect_url()
