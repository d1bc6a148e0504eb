"""Many alerts written at once: what they are now, in one statement."""

from collections.abc import Sequence

from django.db import connection

from monitoring.models import Alert

COLUMNS = {
    "rule_name": "varchar",
    "severity": "varchar",
    "above": "boolean",
    "threshold": "float8",
    "unit": "varchar",
    "value": "float8",
    "worst": "float8",
    "reason": "varchar",
    "status": "varchar",
    "fired": "timestamptz",
    "resolved": "timestamptz",
    "ended_by": "varchar",
    "held": "float8",
    "calm": "float8",
    "unseen": "float8",
    "seen": "float8",
}
"""What an evaluation may change, and as what it crosses to the database."""

_SET = ", ".join(f"{name} = now.{name}" for name in COLUMNS)
_ARRAYS = ", ".join(f"%s::{kind}[]" for kind in COLUMNS.values())
_UPDATE = (
    f"UPDATE monitoring_alert AS alert SET {_SET} "
    f"FROM unnest(%s::bigint[], {_ARRAYS}) AS now(id, {', '.join(COLUMNS)}) "
    "WHERE alert.id = now.id"
)


def write(alerts: Sequence[Alert]) -> None:
    if not alerts:
        return
    columns = [
        [str(v) if kind == "varchar" else v for v in _column(alerts, name)]
        for name, kind in COLUMNS.items()
    ]
    with connection.cursor() as cursor:
        cursor.execute(_UPDATE, [[alert.pk for alert in alerts], *columns])


def _column(alerts: Sequence[Alert], name: str) -> list[object]:
    return [getattr(alert, name) for alert in alerts]
