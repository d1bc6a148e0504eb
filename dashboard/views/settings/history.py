"""Revisions as pages show them: each with what it changed against the one before."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from dashboard.configuration.declared import Catalogue, Values, Words
from dashboard.models import Revision

SHOWN = 30


@dataclass(frozen=True)
class Difference:
    label: Words
    old: str
    new: str


@dataclass(frozen=True)
class Change:
    revision: Revision
    differences: list[Difference]


def history(catalogue: Catalogue, revisions: Iterable[Revision]) -> list[Change]:
    """`revisions` newest first, of one thing."""
    rows = list(revisions)
    before = {row.pk: older.values for row, older in pairwise(rows)}
    return [Change(row, differences(catalogue, before.get(row.pk), row)) for row in rows]


def differences(catalogue: Catalogue, before: Values | None, row: Revision) -> list[Difference]:
    if before is None:
        return []
    return [
        Difference(setting.label, setting.shown(old), setting.shown(new))
        for setting, old, new in catalogue.changes(before, row.values)
    ]
