"""How the fleet has drifted from the document that was applied last, and by whom."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from django.db.models import QuerySet

from dashboard.choices import RevisionState
from dashboard.configuration.declared import Catalogue
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.node import NODE
from dashboard.configuration.panel import PANEL
from dashboard.declaring.applying import differences
from dashboard.declaring.changes import Difference
from dashboard.declaring.problems import DocumentRefused, Problem
from dashboard.declaring.reading import load
from dashboard.models import AuditEntry, DeclaredDocument, Revision

TAKEN = (RevisionState.CURRENT, RevisionState.PAST)
LOOKED_AT = 50
"""Revisions of one thing, newest first, in which who changed a setting is looked for."""


@dataclass(frozen=True)
class Culprit:
    by: str
    at: datetime
    why: str = ""
    number: int | None = None
    """Of the revision, where it was one."""


@dataclass(frozen=True)
class Drifted:
    difference: Difference
    """`now` is what is, `wanted` what was declared."""
    who: Culprit | None
    """None where nothing tells."""


@dataclass(frozen=True)
class Drift:
    document: DeclaredDocument
    found: list[Drifted]
    problems: list[Problem]
    """Why the document could not be applied any more."""


def drift() -> Drift | None:
    """None where no document was ever applied."""
    row = DeclaredDocument.objects.first()
    if row is None:
        return None
    try:
        found = differences(load(row.text))
    except DocumentRefused as error:
        return Drift(row, [], error.problems)
    return Drift(row, [Drifted(one, _who(one)) for one in found], [])


def _who(one: Difference) -> Culprit | None:
    rows = Revision.objects.filter(state__in=TAKEN).order_by("-number")
    match one.kind:
        case "panel":
            return _in(PANEL, rows.filter(deployment=None, node=None), one.setting)
        case "node":
            return _in(NODE, rows.filter(node__name=one.name), one.setting)
        case "deployment" if one.setting not in ("", "run"):
            return _in(ENGINE, rows.filter(deployment__name=one.name), one.setting)
    return _noted(one)


def _in(catalogue: Catalogue, rows: QuerySet[Revision], setting: str) -> Culprit | None:
    """The newest that changed it."""
    known = list(rows[:LOOKED_AT])
    for newer, older in pairwise(known):
        if _value(catalogue, newer, setting) != _value(catalogue, older, setting):
            return Culprit(newer.by, newer.applied_at or newer.at, newer.why, newer.number)
    return None


def _value(catalogue: Catalogue, row: Revision, setting: str) -> object:
    if setting in catalogue:
        return catalogue.complete(row.values)[setting]
    return row.content.get(setting)


def _noted(one: Difference) -> Culprit | None:
    """From the audit trail, for what has no revisions."""
    actions: Sequence[str] = {
        "deployment": ("deployment.deploy", "deployment.stop", "deployment.delete"),
        "template": ("template.keep", "template.remove"),
        "team": ("team.create", "team.change", "team.remove"),
    }.get(one.kind, ())
    entry = AuditEntry.objects.filter(action__in=actions, target=one.name).first()
    return Culprit(entry.actor, entry.at, entry.why) if entry else None
