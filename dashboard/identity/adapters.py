"""Where allauth asks us: who may come in, as what, and what is said."""

from typing import Any, NoReturn

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.base import AuthProcess
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from dashboard import panel_settings
from dashboard.audit import Actor, note
from dashboard.errors import TandemError
from dashboard.identity import provider as providers
from dashboard.identity import roles
from dashboard.identity.errors import Refused
from dashboard.identity.grants import set_role
from dashboard.identity.oidc import OidcProvider, app_of
from dashboard.identity.web import Session
from dashboard.models import IdentityProvider
from dashboard.sentences import Sentence

NO_ACCOUNT = gettext_noop(
    "There is no account for you yet, and new ones are not made here by themselves. Ask an "
    "administrator."
)
DISABLED = gettext_noop("Your account is switched off. Ask an administrator.")
TOO_MANY = _("Too many failed attempts. Wait a few minutes and try again.")


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "too_many_login_attempts": TOO_MANY,
        "rate_limited": TOO_MANY,
    }

    def get_client_ip(self, request: HttpRequest) -> str:
        """As everywhere in the panel: what the server says, which knows its own proxies."""
        return str(request.META.get("REMOTE_ADDR") or "127.0.0.1")

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_login_stages(self) -> list[str]:
        return ["dashboard.identity.factors.FactorStage"]

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        messages.error(request, gettext(DISABLED))
        return redirect("sign-in")

    def login(self, request: HttpRequest, user: User) -> None:
        super().login(request, user)
        days = panel_settings.current()["session_days"]
        request.session.set_expiry(int(str(days)) * 86_400)

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:
        answer: HttpResponse = super().post_login(request, user, **kwargs)
        if "sociallogin" in (kwargs.get("signal_kwargs") or {}):
            providers.let_in(user)
        return answer

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """What there is to say, our own pages say in their own words."""

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """The audit trail has it; accounts here need not have an address."""


class SocialAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    def get_requests_session(self) -> Session:
        row = providers.stored()
        return Session(row.ca if row else "")

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        row = providers.in_use()
        if row is None or provider not in (None, providers.key_of(row.issuer)):
            return []
        return [app_of(row)]

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: str | None = None
    ) -> OidcProvider:
        row = providers.in_use()
        if row is None or provider != providers.key_of(row.issuer):
            raise SocialApp.DoesNotExist
        return OidcProvider(request, app_of(row), row)

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Whoever the provider vouches for is let in here or turned away."""
        row = sociallogin.provider.row
        claims = sociallogin.account.extra_data
        try:
            roles.check_domain(claims, row.domains)
            if sociallogin.state.get("process") == AuthProcess.CONNECT:
                return
            role = roles.role_from(claims, row.groups_claim, row.groups, row.default_role)
            if not sociallogin.is_existing and not row.create:
                raise Refused(Sentence(NO_ACCOUNT))
        except Refused as error:
            if sociallogin.is_existing:
                providers.turned_away(sociallogin.user)
            turn_away(request, error, str(claims.get("email") or sociallogin.account.uid))
        if sociallogin.is_existing and roles.decides_roles(row.groups_claim, row.groups):
            set_role(sociallogin.user, role, _actor(row))

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return True

    @transaction.atomic
    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        user: User = super().save_user(request, sociallogin, form)
        row = sociallogin.provider.row
        claims = sociallogin.account.extra_data
        role = roles.role_from(claims, row.groups_claim, row.groups, row.default_role)
        note(_actor(row), "account.add", user, after={"role": role.value})
        set_role(user, role, _actor(row))
        return user

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> None:
        """allauth's own page is never shown."""
        turn_away(request, exception, "")

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: Any) -> str:
        return "/account/"


def turn_away(request: HttpRequest, error: Exception | None, who: str) -> NoReturn:
    """Back to the sign-in page, with the reason."""
    user_login_failed.send(
        sender=__name__, credentials={"username": who or "OpenID Connect"}, request=request
    )
    said = (
        str(error)
        if isinstance(error, TandemError)
        else gettext("Signing in through the provider did not come to an end. Please try again.")
    )
    messages.error(request, said)
    target = "account" if request.user.is_authenticated else "sign-in"
    raise ImmediateHttpResponse(redirect(target))


def _actor(row: IdentityProvider) -> Actor:
    return Actor(str(row), via="panel")
