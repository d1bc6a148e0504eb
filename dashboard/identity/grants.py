"""The role that a provider's groups give, written where the panel looks for it."""

from django.contrib.auth.models import User

from dashboard.audit import Actor, note
from dashboard.choices import Role
from dashboard.models import Account


def set_role(user: User, role: Role, actor: Actor) -> None:
    """Django's own administration follows it too."""
    account, made = Account.objects.get_or_create(user=user, defaults={"role": role})
    before = None if made else account.role
    if before == role:
        return
    account.role = role
    account.save(update_fields=["role"])
    user.is_staff = role.strength >= Role.OPERATOR.strength
    user.is_superuser = role == Role.ADMIN
    user.save(update_fields=["is_staff", "is_superuser"])
    note(actor, "account.role", user, before={"role": before}, after={"role": role.value})
