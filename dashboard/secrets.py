"""Secrets that settings name. Only here are they written and read; nobody is shown one again."""

from collections.abc import Iterator
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard.audit import Actor, note
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.node import NODE
from dashboard.configuration.panel import PANEL
from dashboard.errors import TandemError
from dashboard.models import Deployment, IdentityProvider, Node, Secret
from dashboard.sentences import Sentence
from engine import logs
from monitoring.vault import SealError, seal_text, unseal_text

HINT = 3
LONG_ENOUGH = 16
"""Characters of a secret that can spare its last three."""
USE_IS_NOTED = timedelta(minutes=1)
"""A secret that is used every second does not write a row every second."""

MISSING = _("There is no secret %(name)s. Add it under Settings, Secrets.")
UNREADABLE = _(
    "The secret %(name)s cannot be read: the key that it was sealed with is gone. Enter it again "
    "under Settings, Secrets."
)
USED = _("The secret %(name)s is used by %(who)s. Choose another one there first.")


class SecretError(TandemError):
    """A secret that is not there, cannot be read, or may not be removed."""


def reveal(name: str) -> str:
    """The secret itself, for the moment of its use; no log line of this process shows it.

    Raises SecretError."""
    secret = Secret.objects.filter(name=name).first()
    if secret is None:
        raise SecretError(Sentence(MISSING, name=name))
    try:
        value = unseal_text(secret.sealed)
    except SealError as error:
        raise SecretError(Sentence(UNREADABLE, name=name)) from error
    logs.hide(value)
    now = timezone.now()
    if secret.last_used is None or now - secret.last_used > USE_IS_NOTED:
        Secret.objects.filter(pk=secret.pk).update(last_used=now)
    return value


def readable(secret: Secret) -> bool:
    """Whether its key is still there; its use is not noted."""
    try:
        unseal_text(secret.sealed)
    except SealError:
        return False
    return True


@transaction.atomic
def keep(name: str, kind: str, value: str, actor: Actor) -> Secret:
    """Add it, or put another value in its place."""
    known = Secret.objects.select_for_update().filter(name=name).first()
    secret = known or Secret(name=name)
    secret.kind = kind
    secret.sealed = seal_text(value)
    secret.hint = value[-HINT:] if len(value) >= LONG_ENOUGH else ""
    secret.by_id = actor.user_id
    secret.changed = timezone.now()
    secret.save()
    # A provider with another client secret has to prove itself anew before passwords go.
    IdentityProvider.objects.filter(secret=secret).update(came=[])
    note(actor, "secret.replace" if known else "secret.add", secret, after={"kind": kind})
    return secret


@transaction.atomic
def remove(secret: Secret, actor: Actor) -> None:
    """Raises SecretError, which names who uses it."""
    if who := list(users_of(secret)):
        named = ", ".join(str(one) for one in who)
        raise SecretError(Sentence(USED, name=secret.name, who=named))
    note(actor, "secret.remove", secret, before={"kind": secret.kind})
    secret.delete()


def users_of(secret: Secret) -> Iterator[Sentence]:
    """Who would miss it."""
    if IdentityProvider.objects.filter(secret=secret).exists():
        yield Sentence(_("the sign-in"))
    if any(_panel_values().get(one.name) == secret.name for one in PANEL if one.secret):
        yield Sentence(_("the panel’s settings"))
    for node in Node.objects.only("name", "settings"):
        if any(node.settings.get(one.name) == secret.name for one in NODE if one.secret):
            yield Sentence(_("node %(name)s"), name=node.name)
    for deployment in Deployment.objects.only("name", "settings"):
        if any(deployment.settings.get(one.name) == secret.name for one in ENGINE if one.secret):
            yield Sentence(_("deployment %(name)s"), name=deployment.name)


def _panel_values() -> dict[str, object]:
    from dashboard.panel_settings import current  # It reveals secrets for the mail server.

    return dict(current())
