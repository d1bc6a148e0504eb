"""Teams: made, changed and removed; what belongs to one is seen by its members alone."""

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext_noop as _

from dashboard import audit
from dashboard.audit import Actor
from dashboard.errors import StatusConflict
from dashboard.models import Deployment, Node, Team
from dashboard.sentences import Sentence


@dataclass(frozen=True)
class Content:
    """Who is in a team, and what belongs to it."""

    members: Collection[User]
    deployments: Collection[Deployment]
    nodes: Collection[Node]


@transaction.atomic
def create(name: str, actor: Actor) -> Team:
    """Raises StatusConflict when the name is taken."""
    if Team.objects.filter(name=name).exists():
        raise StatusConflict(Sentence(_("There is a team %(name)s already."), name=name))
    team = Team.objects.create(name=name)
    audit.note(actor, "team.create", team)
    return team


@transaction.atomic
def fill(team: Team, content: Content, actor: Actor) -> None:
    team = Team.objects.select_for_update().get(pk=team.pk)
    before = told(team)
    team.members.set(content.members)
    team.deployments.set(content.deployments)
    team.nodes.set(content.nodes)
    after = told(team)
    if before != after:
        audit.note(actor, "team.change", team, before=before, after=after)


@transaction.atomic
def remove(team: Team, actor: Actor) -> None:
    """What belonged to it alone is everybody's from now on."""
    audit.note(actor, "team.remove", team, before=told(team))
    team.delete()


def told(team: Team) -> dict[str, list[str]]:
    """By names, in order."""
    return {
        "members": sorted(team.members.values_list("username", flat=True)),
        "deployments": sorted(team.deployments.values_list("name", flat=True)),
        "nodes": sorted(team.nodes.values_list("name", flat=True)),
    }
