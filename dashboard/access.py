"""Who may do what: roles, each of which may also do what the weaker ones may."""

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User

from dashboard.choices import Role
from dashboard.models import Account

Visitor = AbstractBaseUser | AnonymousUser


def role_of(user: Visitor) -> Role | None:
    """The account's role, else what the user's flags say; None for who is not signed in or not
    active any more."""
    if not isinstance(user, User) or not user.is_active:
        return None
    account = Account.objects.filter(user=user).first()
    if account is not None:
        return Role(account.role)
    if user.is_superuser:
        return Role.ADMIN
    return Role.OPERATOR if user.is_staff else Role.MEMBER


def may(user: Visitor, role: Role) -> bool:
    """Whether the user is at least that."""
    found = role_of(user)
    return found is not None and found.strength >= role.strength
