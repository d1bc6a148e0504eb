"""Readings as Postgres takes them in a binary COPY, packed without an object a number."""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
FLOAT8 = 701

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ABSENT = struct.pack(">i", -1)
_EIGHT_BYTES = struct.pack(">i", 8)


def microseconds(moment: datetime) -> int:
    """As a timestamptz travels."""
    return (moment - _EPOCH) // _MICROSECOND


class RowPacker:
    """Packs the rows of one layout: which numbers are absent is the same in each of them."""

    def __init__(self, layout: int, absent: Sequence[bool]) -> None:
        self._known = len(absent) - sum(absent)
        texts: list[bytes] = []
        form: list[str] = []
        pending = _array_header(absent)
        for missing in absent:
            if missing:
                pending += _ABSENT
                continue
            texts.append(pending + _EIGHT_BYTES)
            form.append(f"{len(texts[-1])}sd")
            pending = b""
        self._tail = pending
        size = sum(map(len, texts)) + len(self._tail) + 8 * self._known
        self._struct = struct.Struct(f">hiqiqi{''.join(form)}{len(self._tail)}s")
        self._head = (3, 8, layout, 8)
        self._size = size
        self._slots: list[bytes | float] = [b""] * (2 * self._known)
        self._slots[::2] = texts

    def pack(self, at: int, numbers: Sequence[float | None]) -> bytes:
        """`at` in microseconds as `microseconds` gives them."""
        known = [number for number in numbers if number is not None]
        if len(known) != self._known:
            raise ValueError("other numbers are absent than the layout says")
        slots = self._slots.copy()
        slots[1::2] = known
        return self._struct.pack(*self._head, at, self._size, *slots, self._tail)


def _array_header(absent: Sequence[bool]) -> bytes:
    """One dimension, whether any is null, the type, the length, counted from 1."""
    if not absent:
        return struct.pack(">iii", 0, 0, FLOAT8)
    return struct.pack(">iiiii", 1, int(any(absent)), FLOAT8, len(absent), 1)
