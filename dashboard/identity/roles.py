"""What a provider's claims say about somebody: whether they may come in, and as what. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_noop as _

from dashboard.choices import Role
from dashboard.identity.errors import Refused
from dashboard.sentences import Sentence

NO_EMAIL = _(
    "Only people with an e-mail address at %(domains)s may sign in, and the provider gives none "
    "that it has verified."
)
OTHER_DOMAIN = _("Only people with an e-mail address at %(domains)s may sign in, not %(email)s.")
NO_GROUP = _(
    "None of your groups gives a role here. Ask an administrator, or your provider’s, for one of "
    "them."
)


def check_domain(claims: Mapping[str, Any], domains: Sequence[str]) -> None:
    """Raises Refused. An address counts only where the provider has verified it."""
    if not domains:
        return
    allowed = ", ".join(domains)
    email = str(claims.get("email") or "")
    if "@" not in email or claims.get("email_verified") not in (True, "true"):
        raise Refused(Sentence(NO_EMAIL, domains=allowed))
    if email.rpartition("@")[2].lower() not in [domain.lower() for domain in domains]:
        raise Refused(Sentence(OTHER_DOMAIN, domains=allowed, email=email))


def role_from(
    claims: Mapping[str, Any], claim: str, groups: Mapping[str, Sequence[str]], default: str
) -> Role:
    """The strongest role that one of the groups gives, else the default. Raises Refused."""
    given = set(values_of(claims, claim)) if claim else set()
    matching = [role for role in Role if given.intersection(groups.get(role, ()))]
    if matching:
        return matching[-1]
    if not default:
        raise Refused(Sentence(NO_GROUP))
    return Role(default)


def decides_roles(claim: str, groups: Mapping[str, Iterable[str]]) -> bool:
    """Whether the provider's groups, and not the page of people, say who may do what."""
    return bool(claim) and any(groups.values())


def values_of(claims: Mapping[str, Any], claim: str) -> list[str]:
    """A claim may lie deeper, `realm_access.roles`, and may be one value or a list of them."""
    held: Any = claims.get(claim)
    if held is None:
        held = claims
        for part in claim.split("."):
            held = held.get(part) if isinstance(held, Mapping) else None
    if isinstance(held, str):
        return [held]
    return [str(one) for one in held] if isinstance(held, list) else []
