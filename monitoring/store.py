"""Frames into Postgres: binary COPY, and a slower path for what is there already."""

import logging
from collections.abc import Sequence
from datetime import datetime

from django.db import IntegrityError, connection, transaction

from monitoring.frames import Frame, SubjectReading
from monitoring.models import Layout

log = logging.getLogger(__name__)

COPY = "COPY monitoring_reading (layout_id, at, numbers) FROM STDIN (FORMAT BINARY)"
INSERT = (
    "INSERT INTO monitoring_reading (layout_id, at, numbers) "
    "VALUES (%s, %s, %s::double precision[]) ON CONFLICT DO NOTHING"
)
MAX_CACHED_LAYOUTS = 10_000

Row = tuple[int, datetime, list[float | None]]

_layouts: dict[tuple[int, str, str], int] = {}
"""(node, subject, digest) -> Layout id; forgotten when Postgres says that one is gone."""


def store(frames: Sequence[Frame]) -> None:
    """Write all frames in one transaction and set their `stored`.

    A frame that is there already (resent after a lost answer) is left as it is. A frame of a node
    that has been removed is refused. Raises django.db.DatabaseError when Postgres cannot be used.
    """
    try:
        with transaction.atomic():
            _copy([row for frame in frames for row in _rows(frame)])
    except IntegrityError:
        _layouts.clear()
        for frame in frames:
            _store_one(frame)
    else:
        for frame in frames:
            frame.stored = len(frame.readings)


def _copy(rows: Sequence[Row]) -> None:
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(COPY) as copy:
        copy.set_types(["int8", "timestamptz", "float8[]"])
        for row in rows:
            copy.write_row(row)


def _store_one(frame: Frame) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            stored = 0
            for row in _rows(frame):
                cursor.execute(INSERT, row)
                stored += cursor.rowcount
    except IntegrityError as error:
        _layouts.clear()
        frame.stored = 0
        frame.refused.append("The node is not in the fleet any more.")
        log.info("telemetry of node %s refused: %s", frame.node, error)
    else:
        frame.stored = stored


def _rows(frame: Frame) -> list[Row]:
    return [
        (_layout(frame.node, reading), frame.at, list(reading.numbers))
        for reading in frame.readings
    ]


def _layout(node: int, reading: SubjectReading) -> int:
    key = (node, reading.subject, reading.layout.digest)
    if key not in _layouts:
        if len(_layouts) >= MAX_CACHED_LAYOUTS:
            _layouts.clear()
        row, _made = Layout.objects.get_or_create(
            node_id=node,
            subject=reading.subject,
            digest=key[2],
            defaults={"fields": reading.fields},
        )
        _layouts[key] = row.pk
    return _layouts[key]
