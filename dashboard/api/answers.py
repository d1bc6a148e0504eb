"""Rows as the API tells them."""

from typing import Any

import msgspec

from dashboard.configuration.declared import Catalogue, Values
from dashboard.configuration.engine import ENGINE
from dashboard.lifecycle import revisions
from dashboard.lifecycle.preview import Preview
from dashboard.models import Deployment, Revision


def deployment(row: Deployment) -> dict[str, Any]:
    return {
        "name": row.name,
        "settings": ENGINE.complete(row.settings),
        "content": revisions.content_of(row),
        "revision": row.revision.number if row.revision else None,
    }


def revision(row: Revision) -> dict[str, Any]:
    row.refresh_from_db()
    return {
        "number": row.number,
        "state": row.state,
        "by": row.by,
        "at": row.at.isoformat(),
        "why": row.why,
        "origin": row.origin,
        "outcome": str(row.outcome),
        "settings": row.values,
        "content": row.content,
    }


def preview(ahead: Preview) -> dict[str, Any]:
    return {
        "way": ahead.way.value,
        "changes": [msgspec.to_builtins(change) for change in ahead.changes],
        "why": str(ahead.why),
        "pause_seconds": ahead.pause_seconds,
        "basis": str(ahead.basis),
    }


def changes(catalogue: Catalogue, before: Values, after: Values) -> dict[str, Any]:
    found = [
        {
            "name": setting.name,
            "before": old,
            "after": new,
            "live": setting.applies == "live",
        }
        for setting, old, new in catalogue.changes(before, after)
    ]
    return {"changes": found}
