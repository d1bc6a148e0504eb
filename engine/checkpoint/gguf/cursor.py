"""Bounded sequential reads of a file's header; every failure names the field and the byte."""

import os
import struct
from pathlib import Path

from engine.errors import CheckpointError, Part, Said, said, system_words
from engine.errors import gettext_noop as _

_WINDOW = 256 * 1024
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class Cursor:
    """Reads forward through `fd`, never beyond its end and never more than a window at once."""

    def __init__(self, fd: int, path: Path, offset: int = 0) -> None:
        self._fd = fd
        self.path = path
        self.name = path.name
        self.size = os.fstat(fd).st_size
        self._base = offset
        self._window = b""
        self._at = 0

    @property
    def offset(self) -> int:
        """Byte offset in the file of what is read next."""
        return self._base + self._at

    @property
    def remaining(self) -> int:
        return self.size - self.offset

    def fail(self, problem: str, /, **parts: Part) -> CheckpointError:
        return CheckpointError(
            _("%(file)s: %(problem)s (at byte %(offset)s)."),
            file=self.name,
            problem=Said(problem, parts),
            offset=self.offset,
        )

    def u32(self, what: Said) -> int:
        return int(_U32.unpack(self.take(4, what))[0])

    def u64(self, what: Said) -> int:
        return int(_U64.unpack(self.take(8, what))[0])

    def text(self, what: Said, limit: int) -> str:
        """A length-prefixed UTF-8 string of at most `limit` bytes."""
        length = self.u64(said(_("the length of %(what)s"), what=what))
        if length > limit:
            raise self.fail(
                _("%(what)s claims to be %(length)s bytes long; the limit is %(limit)s"),
                what=what,
                length=length,
                limit=limit,
            )
        try:
            return self.take(length, what).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.fail(_("%(what)s is not valid UTF-8"), what=what) from error

    def take(self, count: int, what: Said) -> bytes:
        self._require(count, what)
        if self._at + count > len(self._window):
            self._refill(count)
        start = self._at
        self._at += count
        return self._window[start : self._at]

    def skip(self, count: int, what: Said) -> None:
        self._require(count, what)
        self._at += count

    def skip_strings(self, count: int, what: Said) -> None:
        """Step over `count` length-prefixed strings; only their lengths are looked at."""
        unpack = _U64.unpack_from
        for _index in range(count):
            if self._at + 8 > len(self._window):
                self._require(8, what)
                self._refill(8)
            self._at += 8 + unpack(self._window, self._at)[0]
            if self.remaining < 0:
                raise self.truncated(
                    _("%(what)s goes %(excess)s bytes too far"), what=what, excess=-self.remaining
                )

    def _require(self, count: int, what: Said) -> None:
        if count > self.remaining:
            raise self.truncated(
                _("%(what)s at byte %(offset)s needs %(count)s bytes"),
                what=what,
                offset=self.offset,
                count=count,
            )

    def truncated(self, need: str, /, **parts: Part) -> CheckpointError:
        return CheckpointError(
            _("%(file)s is truncated: %(need)s, but the file ends at byte %(size)s."),
            file=self.name,
            need=Said(need, parts),
            size=self.size,
        )

    def _refill(self, count: int) -> None:
        self._base += self._at
        self._at = 0
        try:
            self._window = os.pread(self._fd, max(count, _WINDOW), self._base)
        except OSError as error:
            raise self.fail(
                _("the system could not read it: %(reason)s"), reason=system_words(error)
            ) from error
        if len(self._window) < count:
            raise CheckpointError(
                _("%(file)s became shorter while it was being read."), file=self.name
            )
