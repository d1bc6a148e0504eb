"""Second factors: codes of an authenticator app and recovery codes. Their secrets are sealed."""

from allauth.account.internal.flows.login import get_authentication_records
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.stages import AuthenticateStage
from allauth.mfa.totp.internal import auth
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from dashboard import panel_settings
from dashboard.audit import Actor, note
from dashboard.choices import Role
from dashboard.identity.provider import stored
from monitoring.vault import SealError, seal_text, unseal_text

PENDING = "second_factor_pending"


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    error_messages = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": _("This code is wrong, or it was used before. Wait for the next one."),
    }

    def encrypt(self, text: str) -> str:
        return seal_text(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Raises SealError."""
        return unseal_text(encrypted_text)

    def get_totp_issuer(self) -> str:
        return "Tandem"


class FactorStage(AuthenticateStage):  # type: ignore[misc]
    """The step after the password; not for those whose provider has asked already."""

    def _should_handle(self, request: HttpRequest) -> bool:
        wanted: bool = super()._should_handle(request)
        return wanted and not vouched_for(request, self.login.user)


def has_factor(user: User) -> bool:
    return bool(Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists())


def is_missing(request: HttpRequest) -> bool:
    """Whether this person has to set one up before anything else."""
    if not isinstance(request.user, User) or not wanted_of(request.user):
        return False
    if has_factor(request.user):
        return False
    return not vouched_for(request, request.user)


def wanted_of(user: User) -> bool:
    from dashboard.access import may

    wanted = panel_settings.current()["mfa_required"]
    if wanted == "everybody":
        return True
    return wanted == "operators" and may(user, Role.OPERATOR)


def vouched_for(request: HttpRequest, user: User) -> bool:
    """The provider through which they came asks for one itself."""
    methods = [record.get("method") for record in get_authentication_records(request, user)]
    if "socialaccount" not in methods:
        return False
    provider = stored()
    return provider is not None and provider.own_factor


def begin(request: HttpRequest) -> str:
    """The secret for an authenticator app; until it is confirmed the session keeps it, sealed."""
    try:
        return unseal_text(request.session[PENDING])
    except (KeyError, SealError):
        secret: str = auth.generate_totp_secret()
        request.session[PENDING] = seal_text(secret)
        return secret


@transaction.atomic
def confirm(request: HttpRequest, user: User, secret: str, actor: Actor) -> list[str]:
    """The recovery codes that come with it."""
    Authenticator.objects.filter(user=user).delete()
    auth.TOTP.activate(user, secret)
    codes: list[str] = RecoveryCodes.activate(user).get_unused_codes()
    request.session.pop(PENDING, None)
    note(actor, "account.factor-add", user)
    return codes


@transaction.atomic
def fresh_codes(user: User, actor: Actor) -> list[str]:
    Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).delete()
    codes: list[str] = RecoveryCodes.activate(user).get_unused_codes()
    note(actor, "account.recovery-codes", user)
    return codes


@transaction.atomic
def remove(user: User, actor: Actor) -> None:
    Authenticator.objects.filter(user=user).delete()
    note(actor, "account.factor-remove", user)


def codes_left(user: User) -> int | None:
    """Recovery codes that were not used; None where they cannot be read."""
    row = Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).first()
    if row is None:
        return 0
    try:
        return len(row.wrap().get_unused_codes())
    except SealError:
        return None
