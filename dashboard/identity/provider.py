"""Which ways of signing in are open."""

import hashlib
from collections.abc import Callable

from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.db import transaction

from dashboard import panel_settings
from dashboard.choices import Role
from dashboard.models import IdentityProvider


def stored() -> IdentityProvider | None:
    return IdentityProvider.objects.select_related("secret").first()


def in_use() -> IdentityProvider | None:
    """The provider, where it is switched on and complete."""
    if not panel_settings.current()["sign_in_oidc"]:
        return None
    provider = stored()
    complete = provider is not None and provider.issuer and provider.client_id and provider.secret
    return provider if complete else None


def local_open() -> bool:
    """Whether a password of ours lets people in.

    Off only while an administrator has come in through the provider as it is set up now: nobody is
    ever locked out by a switch, by a provider that was changed, or by an account that has gone."""
    if panel_settings.current()["sign_in_local"]:
        return True
    provider = in_use()
    return provider is None or not administrators_through(provider)


def administrators_through(provider: IdentityProvider) -> bool:
    """Whether an administrator has signed in through it."""
    from dashboard.access import role_of

    accounts = SocialAccount.objects.filter(
        provider=key_of(provider.issuer), user__is_active=True, user__in=provider.came
    ).select_related("user")
    return any(role_of(account.user) == Role.ADMIN for account in accounts.iterator())


def key_of(issuer: str) -> str:
    """Under which accounts are kept: the same subject of another issuer is somebody else."""
    return f"oidc-{hashlib.sha256(issuer.encode()).hexdigest()[:24]}"


def account_at(user: User, provider: IdentityProvider) -> SocialAccount | None:
    return SocialAccount.objects.filter(user=user, provider=key_of(provider.issuer)).first()


def let_in(user: User) -> None:
    """They have come through it, all the way."""
    _change_came(lambda came: sorted({*came, user.pk}))


def turned_away(user: User) -> None:
    """It vouches for them, and they are not let in all the same."""
    _change_came(lambda came: [pk for pk in came if pk != user.pk])


@transaction.atomic
def _change_came(change: Callable[[list[int]], list[int]]) -> None:
    row = IdentityProvider.objects.select_for_update().first()
    if row is not None and (came := change(row.came)) != row.came:
        IdentityProvider.objects.filter(pk=row.pk).update(came=came)


def changed() -> None:
    """Whom it let in before proves nothing any more."""
    IdentityProvider.objects.update(came=[])
