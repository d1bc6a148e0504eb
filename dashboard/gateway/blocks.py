"""A stream of server-sent events, cut into comments and whole events."""

import msgspec
from django.utils.translation import gettext as _

from dashboard.gateway.errors import ApiError

MAX_EVENT_BYTES = 16 * 1024 * 1024
MARKS = (b": j ", b": c ", b": t ", b": r ", b": status ")
"""What a head tells the gateway alone."""


class Comment(msgspec.Struct, frozen=True):
    """One line, such as `: paused`. Sent on as a line and never as an event of its own: to some
    clients an event without data is a fault."""

    line: bytes

    def encode(self) -> bytes:
        return self.line + b"\n"


class Event(msgspec.Struct, frozen=True):
    lines: tuple[bytes, ...]
    """As they are to reach the caller."""
    marks: tuple[bytes, ...] = ()

    @property
    def data(self) -> bytes:
        """The `data` lines, joined; empty where there are none."""
        return b"\n".join(
            line[5:].removeprefix(b" ") for line in self.lines if line.startswith(b"data:")
        )

    @property
    def id(self) -> bytes:
        ids = [line[3:].strip() for line in self.lines if line.startswith(b"id:")]
        return ids[-1] if ids else b""

    def encode(self) -> bytes:
        return b"\n".join(self.lines) + b"\n\n"


class BlockReader:
    """Cuts a byte stream, across any chunk borders."""

    def __init__(self) -> None:
        self._buffer = b""
        self._lines: list[bytes] = []
        self._marks: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Comment | Event]:
        """What `chunk` completed. Raises ApiError on an event without end."""
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        self._size += len(chunk)
        blocks: list[Comment | Event] = []
        for line in lines:
            blocks += self._take(line.removesuffix(b"\r"))
        if not (self._lines or self._marks):
            self._size = len(self._buffer)
        if self._size > MAX_EVENT_BYTES:
            raise ApiError(_("The answer came in a form that cannot be read."), status=502)
        return blocks

    def _take(self, line: bytes) -> list[Comment | Event]:
        if line.startswith(MARKS):
            self._marks.append(line)
        elif line.startswith(b":"):
            return [Comment(line)]
        elif line:
            self._lines.append(line)
        elif self._lines or self._marks:
            event = Event(tuple(self._lines), tuple(self._marks))
            self._lines, self._marks = [], []
            return [event]
        return []
