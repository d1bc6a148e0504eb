"""Frames into Postgres: one binary COPY a batch, and a second way for what may be there already."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext_noop

from monitoring.live.frames import Frame, SubjectReading
from monitoring.models import Due, Layout
from monitoring.storage.levels import MINUTE, SECOND
from monitoring.storage.rows import HEADER, TRAILER, RowPacker, microseconds
from monitoring.storage.shapes import shapes_of

log = logging.getLogger(__name__)

COPY = "COPY {table} (layout_id, at, numbers) FROM STDIN (FORMAT BINARY)"
INBOX = "monitoring_inbox"
MAKE_INBOX = (
    f"CREATE TEMPORARY TABLE IF NOT EXISTS {INBOX} "
    "(layout_id bigint, at timestamptz, numbers float8[]) ON COMMIT DELETE ROWS"
)
FROM_INBOX = (
    f"INSERT INTO monitoring_reading SELECT layout_id, at, numbers FROM {INBOX} "
    "ON CONFLICT DO NOTHING RETURNING layout_id, at"
)
STILL_THERE = "SELECT id FROM monitoring_layout WHERE id = ANY(%s)"
LATE = timedelta(seconds=60)
"""An older reading's minute may have been rolled up: it is noted as due, and the reading may have
come before."""
MOST_CACHED = 50_000
NODE_GONE = gettext_noop("The node is not in the fleet any more.")
TOO_OLD = gettext_noop("The reading is older than what is kept by the second.")

Key = tuple[int, str, str]
"""Node, subject, digest of the fields."""

_packers: dict[Key, tuple[int, RowPacker]] = {}
"""Layout id and how its rows are packed; asked of Postgres with each batch."""


def store(frames: Sequence[Frame]) -> None:
    """Write all frames in one transaction and set their `stored`.

    A frame that is there already (resent after a lost answer) is left as it is. A frame of a node
    that has been removed, or from before what is kept, is refused. Raises django.db.DatabaseError
    when Postgres cannot be used.
    """
    now = timezone.now()
    taken = [frame for frame in frames if not _too_old(frame, now)]
    _know(taken)
    taken = [frame for frame in taken if not _of_nobody(frame)]
    if not taken:
        return
    late = [frame for frame in taken if frame.at < now - LATE]
    try:
        if late:
            _write_again(taken, late)
        else:
            _write(taken)
    except IntegrityError:
        _write_again(taken, late)


def _too_old(frame: Frame, now: datetime) -> bool:
    if frame.at >= now - SECOND.keep:
        return False
    return _refuse(frame, TOO_OLD)


def _of_nobody(frame: Frame) -> bool:
    if all(_key(frame.node, reading) in _packers for reading in frame.readings):
        return False
    return _refuse(frame, NODE_GONE)


def _refuse(frame: Frame, sentence: str) -> bool:
    frame.stored = 0
    frame.refused.append(sentence)
    return True


def _write(frames: Sequence[Frame]) -> None:
    """All rows are new, or IntegrityError."""
    with transaction.atomic():
        _copy("monitoring_reading", frames)
    for frame in frames:
        frame.stored = len(frame.readings)


def _write_again(frames: Sequence[Frame], late: Iterable[Frame]) -> None:
    """Rows that are there already are passed over."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(MAKE_INBOX)
            _copy(INBOX, frames)
            cursor.execute(FROM_INBOX)
            new = Counter(cursor.fetchall())
            cursor.execute(f"TRUNCATE {INBOX}")
        minutes = {MINUTE.floor(frame.at) for frame in late}
        Due.objects.bulk_create(Due(level=MINUTE.name, at=minute) for minute in sorted(minutes))
    for frame in frames:
        rows = {(_packers[_key(frame.node, reading)][0], frame.at) for reading in frame.readings}
        stored = [row for row in rows if new[row]]
        new.subtract(stored)
        frame.stored = len(stored)


def _copy(table: str, frames: Sequence[Frame]) -> None:
    rows = b"".join((HEADER, *_rows(frames), TRAILER))
    statement = COPY.format(table=table)
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(statement) as copy,
    ):
        copy.write(rows)


def _rows(frames: Sequence[Frame]) -> Iterable[bytes]:
    for frame in frames:
        at = microseconds(frame.at)
        for reading in frame.readings:
            yield _packers[_key(frame.node, reading)][1].pack(at, reading.numbers)


def _key(node: int, reading: SubjectReading) -> Key:
    return node, reading.subject, reading.layout.digest


def _know(frames: Sequence[Frame]) -> None:
    """Every layout of theirs that a node in the fleet has stands in `_packers` afterwards."""
    wanted = {_key(frame.node, reading): reading for frame in frames for reading in frame.readings}
    if len(_packers) > MOST_CACHED:
        _packers.clear()
    _forget_removed([_packers[key][0] for key in wanted if key in _packers])
    missing = {key: reading for key, reading in wanted.items() if key not in _packers}
    if missing:
        _make(missing)
        _look_up(missing)


def _forget_removed(known: list[int]) -> None:
    if not known:
        return
    with connection.cursor() as cursor:
        cursor.execute(STILL_THERE, [known])
        removed = set(known) - {pk for (pk,) in cursor.fetchall()}
    if removed:
        for key in [key for key, (pk, _packer) in _packers.items() if pk in removed]:
            del _packers[key]


def _make(missing: dict[Key, SubjectReading]) -> None:
    """Those of nodes that are in the fleet. One removed at this instant is looked for once more."""
    nodes = Layout._meta.get_field("node").related_model._base_manager
    for _attempt in range(2):
        asked = {node for node, _subject, _digest in missing}
        known = set(nodes.filter(pk__in=asked).values_list("pk", flat=True))
        rows = [_layout(key, reading) for key, reading in missing.items() if key[0] in known]
        try:
            with transaction.atomic():
                Layout.objects.bulk_create(rows, ignore_conflicts=True)
        except IntegrityError as error:
            log.info("a node was removed while its layouts were stored: %s", error)
        else:
            return


def _layout(key: Key, reading: SubjectReading) -> Layout:
    node, subject, digest = key
    return Layout(
        node_id=node,
        subject=subject,
        digest=digest,
        fields=reading.fields,
        shapes=shapes_of(subject, reading.fields),
    )


def _look_up(missing: dict[Key, SubjectReading]) -> None:
    nodes = {node for node, _subject, _digest in missing}
    digests = {digest for _node, _subject, digest in missing}
    found = Layout.objects.filter(node__in=nodes, digest__in=digests)
    for layout in found.only("node_id", "subject", "digest"):
        for node in nodes & {layout.node_id}:
            key = node, layout.subject, layout.digest
            if key in missing:
                packer = RowPacker(layout.pk, missing[key].layout.absent)
                _packers[key] = layout.pk, packer
