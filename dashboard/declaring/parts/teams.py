"""Teams, by the names of their members, deployments and nodes."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext_noop as _

from dashboard import teams
from dashboard.audit import Actor
from dashboard.declaring.changes import GONE, THERE, Change, Difference, Looking
from dashboard.declaring.reading import Path
from dashboard.forms.names import is_plain
from dashboard.models import Deployment, Node, Team

FIELDS = ("members", "deployments", "nodes")
ODD_NAME = _("a name has letters, digits, hyphens and underscores alone.")


def changes(look: Looking) -> Iterator[Change]:
    known = {row.name: row for row in Team.objects.all()}
    there = _there(look)
    for name, told in look.things("teams", FIELDS):
        path = ("teams", name)
        if not is_plain(name):
            look.refuse(path, ODD_NAME)
            continue
        wanted = _wanted(look, path, told, there)
        if wanted is None:
            continue
        found = _differing(known.get(name), name, wanted)
        if found:
            yield Change(path, found, partial(_fill, name, wanted))
    if look.prune and look.document.part("teams") is not None:
        for name in known.keys() - (look.document.part("teams") or {}).keys():
            gone = [Difference("team", name, "", THERE, GONE)]
            yield Change(("teams",), gone, partial(_remove, known[name]))


def _there(look: Looking) -> dict[str, set[str]]:
    """What a team may name: also deployments that the document itself makes."""
    return {
        "members": set(User.objects.values_list("username", flat=True)),
        "deployments": set(Deployment.objects.values_list("name", flat=True))
        | set(look.document.part("deployments") or {}),
        "nodes": set(Node.objects.values_list("name", flat=True)),
    }


def _wanted(
    look: Looking, path: Path, told: Mapping[str, Any], there: Mapping[str, set[str]]
) -> dict[str, list[str]] | None:
    before = len(look.problems)
    wanted: dict[str, list[str]] = {}
    for field in FIELDS:
        names = told.get(field) or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            look.refuse((*path, field), _("a list of names is expected here."))
            continue
        for name in set(names) - there[field]:
            look.refuse((*path, field), _("there is no %(name)s."), name=name)
        wanted[field] = sorted(set(names))
    return wanted if len(look.problems) == before else None


def _differing(team: Team | None, name: str, wanted: Mapping[str, list[str]]) -> list[Difference]:
    if team is None:
        return [Difference("team", name, "", GONE, THERE)]
    now = teams.told(team)
    return [
        Difference("team", name, field, ", ".join(now[field]) or GONE, ", ".join(names) or GONE)
        for field, names in wanted.items()
        if now[field] != names
    ]


def _fill(name: str, wanted: Mapping[str, list[str]], actor: Actor, why: str = "") -> None:
    team = Team.objects.filter(name=name).first() or teams.create(name, actor)
    content = teams.Content(
        list(User.objects.filter(username__in=wanted["members"])),
        list(Deployment.objects.filter(name__in=wanted["deployments"])),
        list(Node.objects.filter(name__in=wanted["nodes"])),
    )
    teams.fill(team, content, actor)


def _remove(team: Team, actor: Actor, why: str = "") -> None:
    teams.remove(team, actor)
