"""Accounts of people: made, given a role, switched off; the last administrator stays one."""

import secrets

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import audit
from dashboard.access import role_of
from dashboard.audit import Actor
from dashboard.choices import Role
from dashboard.errors import StatusConflict
from dashboard.identity.grants import set_role
from dashboard.models import ApiKey
from dashboard.sentences import Sentence

LOCK = 0x70656F70
"""Of Postgres' advisory locks, the one that changes of accounts hold: of two administrators who
take the role from each other at once, one stays."""


def administrators() -> QuerySet[User]:
    """Those who can still sign in."""
    by_account = Q(account__role=Role.ADMIN)
    by_flag = Q(account__isnull=True, is_superuser=True)
    return User.objects.filter(by_account | by_flag, is_active=True)


@transaction.atomic
def create(name: str, email: str, role: Role, actor: Actor) -> tuple[User, str]:
    """With a first password, shown once. Raises StatusConflict when the name is taken."""
    if User.objects.filter(username__iexact=name).exists():
        raise StatusConflict(Sentence(_("There is an account %(name)s already."), name=name))
    password = secrets.token_urlsafe(12)
    user = User.objects.create_user(name, email=email, password=password)
    set_role(user, role, actor)
    audit.note(actor, "account.create", user, after={"role": role.value})
    return user, password


@transaction.atomic
def change_role(user: User, role: Role, actor: Actor) -> None:
    """Raises StatusConflict for oneself, and for the last administrator."""
    _one_at_a_time()
    user = User.objects.select_for_update().get(pk=user.pk)
    _not_oneself(user, actor)
    if role != Role.ADMIN:
        _not_the_last(user)
    set_role(user, role, actor)


@transaction.atomic
def switch(user: User, actor: Actor, *, on: bool) -> None:
    """Off: no sign-in, no session, no key from now on. Raises StatusConflict as above."""
    _one_at_a_time()
    user = User.objects.select_for_update().get(pk=user.pk)
    _not_oneself(user, actor)
    if not on:
        _not_the_last(user)
    if user.is_active == on:
        return
    user.is_active = on
    user.save(update_fields=["is_active"])
    if not on:
        _end_sessions(user)
        ApiKey.objects.filter(user=user, revoked=None).update(revoked=timezone.now())
    audit.note(actor, "account.on" if on else "account.off", user)


@transaction.atomic
def reset_password(user: User, actor: Actor) -> str:
    """A first password again, shown once; every session ends."""
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save(update_fields=["password"])
    _end_sessions(user)
    audit.note(actor, "account.password", user)
    return password


def _one_at_a_time() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])


def _not_oneself(user: User, actor: Actor) -> None:
    if user.pk == actor.user_id:
        raise StatusConflict(Sentence(_("Nobody changes their own account here; ask another.")))


def _not_the_last(user: User) -> None:
    if role_of(user) != Role.ADMIN:
        return
    if not administrators().exclude(pk=user.pk).exists():
        words = _("%(name)s is the last administrator; make another one first.")
        raise StatusConflict(Sentence(words, name=str(user)))


def _end_sessions(user: User) -> None:
    for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator():
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            session.delete()
