"""Who may do what: roles, each of which may also do what the weaker ones may; and teams, whose
deployments and nodes nobody else sees but administrators."""

from typing import Any, TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db.models import Model, QuerySet

from dashboard.choices import Role
from dashboard.models import Account, Deployment, Node, Team
from monitoring.scopes import NOTHING, Hidden

Visitor = AbstractBaseUser | AnonymousUser
M = TypeVar("M", bound=Model)


def role_of(user: Visitor) -> Role | None:
    """The account's role, else what the user's flags say; None for who is not signed in or not
    active any more."""
    if not isinstance(user, User) or not user.is_active:
        return None
    account = Account.objects.filter(user_id=user.pk).first()
    if account is not None:
        return Role(account.role)
    if user.is_superuser:
        return Role.ADMIN
    return Role.OPERATOR if user.is_staff else Role.MEMBER


def may(user: Visitor, role: Role) -> bool:
    """Whether the user is at least that."""
    found = role_of(user)
    return found is not None and found.strength >= role.strength


def hidden_from(user: object) -> Hidden:
    """What belongs to teams alone of which the user is no member."""
    if isinstance(user, User) and may(user, Role.ADMIN):
        return NOTHING
    own = _own_teams(user)
    return Hidden(
        _foreign(Team.nodes.through.objects.all(), "node_id", own),
        _foreign(Team.deployments.through.objects.all(), "deployment_id", own),
    )


def visible_deployments(user: object) -> QuerySet[Deployment]:
    return Deployment.objects.exclude(pk__in=hidden_from(user).deployments)


def visible_nodes(user: object) -> QuerySet[Node]:
    return Node.objects.exclude(pk__in=hidden_from(user).nodes)


def hidden_routes(user: object) -> frozenset[str]:
    """Names of deployments that the user may not ask."""
    keys = hidden_from(user).deployments
    if not keys:
        return frozenset()
    return frozenset(Deployment.objects.filter(pk__in=keys).values_list("name", flat=True))


def seen(
    rows: QuerySet[M], hidden: Hidden, node: str = "node", deployment: str = "deployment"
) -> QuerySet[M]:
    """Without those about something hidden; `""` where a row has no such field."""
    if node and hidden.nodes:
        rows = rows.exclude(**{f"{node}__in": hidden.nodes})
    if deployment and hidden.deployments:
        rows = rows.exclude(**{f"{deployment}__in": hidden.deployments})
    return rows


def _own_teams(user: object) -> set[int]:
    if not isinstance(user, User):
        return set()
    return set(
        Team.members.through.objects.filter(user_id=user.pk).values_list("team_id", flat=True)
    )


def _foreign(links: QuerySet[Any], field: str, own: set[int]) -> frozenset[int]:
    teams: dict[int, set[int]] = {}
    for key, team in links.values_list(field, "team_id"):
        teams.setdefault(key, set()).add(team)
    return frozenset(key for key, of in teams.items() if not of & own)
