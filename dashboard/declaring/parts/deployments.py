"""Deployments: model, whether they run, engine settings, fallback."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.utils.translation import gettext_noop as _

from dashboard import audit, lifecycle
from dashboard.audit import Actor
from dashboard.choices import DeploymentStatus, RevisionOrigin, RevisionState
from dashboard.configuration.declared import Value, Values
from dashboard.configuration.engine import ENGINE
from dashboard.declaring.changes import GONE, THERE, Change, Difference, Looking, differing
from dashboard.declaring.reading import Path
from dashboard.errors import StatusConflict
from dashboard.forms.names import is_plain
from dashboard.lifecycle import revisions
from dashboard.lifecycle.preview import REFUSED, Preview
from dashboard.models import Deployment, Fallback, Model, Revision

FIELDS = ("model", "run", "settings", "fallback")
FALLBACK = (*revisions.FALLBACK, "model")
RESTING = (DeploymentStatus.STOPPED, DeploymentStatus.FAILED)
ODD_NAME = _("a name has letters, digits, hyphens and underscores alone, and is not “new”.")


@dataclass(frozen=True)
class Wanted:
    name: str
    row: Deployment | None
    values: dict[str, Value]
    content: dict[str, Any]
    run: bool | None
    """None: as it is."""
    told: bool
    """Whether settings, model or fallback are not what they are now."""


def changes(look: Looking) -> Iterator[Change]:
    known = {row.name: row for row in Deployment.objects.select_related("model", "revision")}
    for name, told in look.things("deployments", FIELDS):
        path = ("deployments", name)
        if _is_sound(look, path, name, told):
            with look.at(path, _place):
                change = _change(look, path, known.get(name), told)
                if change is not None:
                    yield change
    if look.prune and look.document.part("deployments") is not None:
        for name in known.keys() - (look.document.part("deployments") or {}).keys():
            gone = [Difference("deployment", name, "", THERE, GONE)]
            yield Change(("deployments",), gone, partial(_remove, known[name]))


def _is_sound(look: Looking, path: Path, name: str, told: Mapping[str, Any]) -> bool:
    before = len(look.problems)
    if not is_plain(name):
        look.refuse(path, ODD_NAME)
    if not isinstance(told.get("run", True), bool):
        look.refuse((*path, "run"), _("this is either true or false."))
    if not isinstance(told.get("model", ""), str):
        look.refuse((*path, "model"), _("this must be the name of a model."))
    look.is_mapping((*path, "settings"), told.get("settings"))
    if look.is_mapping((*path, "fallback"), told.get("fallback")):
        look.only((*path, "fallback"), told.get("fallback") or {}, FALLBACK)
    return len(look.problems) == before


def _place(name: str) -> Path:
    """Where the document has a setting."""
    if name.startswith("fallback."):
        return ("fallback", name.removeprefix("fallback."))
    return ("settings", name) if name in ENGINE or name not in FIELDS else (name,)


def _change(
    look: Looking, path: Path, row: Deployment | None, told: Mapping[str, Any]
) -> Change | None:
    before, content = _now(row)
    after = {**content, **_content(told)}
    values = before if "settings" not in told else {**ENGINE.defaults, **(told["settings"] or {})}
    checked = revisions.check(row or Deployment(name=path[1]), values, after)
    after = revisions.settled(after)
    if row is None:
        new = [Difference("deployment", path[1], "", GONE, str(after["model"]))]
        wanted = Wanted(path[1], None, checked, after, told.get("run"), True)
        return Change(path, new, partial(_make, wanted))
    found = differing(ENGINE, "deployment", row.name, before, checked)
    found += [
        Difference("deployment", row.name, part, _shown(content[part]), _shown(after[part]))
        for part in ("model", "fallback")
        if content[part] != after[part]
    ]
    ahead = _ahead(row, checked, after) if found else None
    if ahead is not None and ahead.way == REFUSED:
        raise StatusConflict(ahead.why)
    wanted = Wanted(row.name, row, checked, after, told.get("run"), bool(found))
    if "run" in told and told["run"] != row.wanted:
        words = {True: "true", False: "false"}
        found.append(
            Difference("deployment", row.name, "run", words[row.wanted], words[told["run"]])
        )
    way = ahead.way.value if ahead is not None else ""
    return Change(path, found, partial(_make, wanted), way) if found else None


def _now(row: Deployment | None) -> tuple[Values, dict[str, Any]]:
    """What is in use, or about to be: a change that is being made counts as made."""
    if row is None:
        return ENGINE.defaults, {"model": "", "fallback": None}
    coming = row.revisions.filter(state=RevisionState.APPLYING).first()
    if coming is not None:
        return ENGINE.complete(coming.values), dict(coming.content)
    return ENGINE.complete(row.settings), revisions.content_of(row)


def _content(told: Mapping[str, Any]) -> dict[str, Any]:
    content = {part: told[part] for part in ("model", "fallback") if part in told}
    if content.get("fallback") is not None:
        blank = Fallback()
        defaults = {name: getattr(blank, name) for name in revisions.FALLBACK}
        content["fallback"] = {**defaults, "model": None, **content["fallback"]}
    return content


def _shown(part: Any) -> str:
    if not isinstance(part, dict):
        return str(part or GONE)
    return ", ".join(f"{name}={value}" for name, value in part.items() if value is not None)


def _ahead(row: Deployment, values: Values, content: Mapping[str, Any]) -> Preview:
    """What applying it would do; nothing is kept."""
    before = Revision(
        deployment=row, values=ENGINE.complete(row.settings), content=revisions.content_of(row)
    )
    trial = Revision(deployment=row, values=values, content=content, replaces=before)
    return revisions.preview(trial)


def _make(wanted: Wanted, actor: Actor, why: str = "") -> None:
    row = wanted.row or _create(wanted, actor)
    if wanted.run is False and row.wanted:
        lifecycle.request_stop(row, actor)
        audit.note(actor, "deployment.stop", row, why=why)
    if wanted.told and (wanted.row is not None or wanted.content["fallback"] is not None):
        revision = revisions.propose(
            row,
            wanted.values,
            wanted.content,
            actor=actor,
            why=why,
            origin=RevisionOrigin.FILE,
        )
        revisions.apply(revision, actor)
    row = Deployment.objects.get(pk=row.pk)
    if wanted.run and not row.wanted and row.status in RESTING:
        lifecycle.request_deploy(row, actor)
        audit.note(actor, "deployment.deploy", row, why=why)


def _create(wanted: Wanted, actor: Actor) -> Deployment:
    model = Model.objects.get(name=wanted.content["model"])
    row = Deployment.objects.create(name=wanted.name, model=model, settings=wanted.values)
    audit.note(actor, "deployment.create", row, after=wanted.values)
    return row


def _remove(row: Deployment, actor: Actor, why: str = "") -> None:
    """One that runs is stopped; the next time it is removed."""
    if row.status in RESTING:
        lifecycle.delete_deployment(row, actor)
        audit.note(actor, "deployment.delete", row.name, why=why)
    elif row.wanted:
        lifecycle.request_stop(row, actor)
        audit.note(actor, "deployment.stop", row, why=why)
