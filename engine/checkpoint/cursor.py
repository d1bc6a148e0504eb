"""Bounded sequential reads of a file's header; every failure names the field and the byte."""

import os
import struct

from engine.errors import CheckpointError

_WINDOW = 256 * 1024
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class Cursor:
    """Reads forward through `fd`, never beyond its end and never more than a window at once."""

    def __init__(self, fd: int, name: str, offset: int = 0) -> None:
        self._fd = fd
        self.name = name
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

    def fail(self, problem: str) -> CheckpointError:
        return CheckpointError(f"{self.name}: {problem} (at byte {self.offset}).")

    def u32(self, what: str) -> int:
        return int(_U32.unpack(self.take(4, what))[0])

    def u64(self, what: str) -> int:
        return int(_U64.unpack(self.take(8, what))[0])

    def text(self, what: str, limit: int) -> str:
        """A length-prefixed UTF-8 string of at most `limit` bytes."""
        length = self.u64(f"the length of {what}")
        if length > limit:
            raise self.fail(f"{what} claims to be {length} bytes long; the limit is {limit}")
        try:
            return self.take(length, what).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.fail(f"{what} is not valid UTF-8") from error

    def take(self, count: int, what: str) -> bytes:
        self._require(count, what)
        if self._at + count > len(self._window):
            self._refill(count)
        start = self._at
        self._at += count
        return self._window[start : self._at]

    def skip(self, count: int, what: str) -> None:
        self._require(count, what)
        self._at += count

    def skip_strings(self, count: int, what: str) -> None:
        """Step over `count` length-prefixed strings; only their lengths are looked at."""
        unpack = _U64.unpack_from
        for _ in range(count):
            if self._at + 8 > len(self._window):
                self._require(8, what)
                self._refill(8)
            self._at += 8 + unpack(self._window, self._at)[0]
            if self.remaining < 0:
                raise self.truncated(f"{what} goes {-self.remaining} bytes too far")

    def _require(self, count: int, what: str) -> None:
        if count > self.remaining:
            raise self.truncated(f"{what} at byte {self.offset} needs {count} bytes")

    def truncated(self, need: str) -> CheckpointError:
        return CheckpointError(
            f"{self.name} is truncated: {need}, but the file ends at byte {self.size}."
        )

    def _refill(self, count: int) -> None:
        self._base += self._at
        self._at = 0
        self._window = os.pread(self._fd, max(count, _WINDOW), self._base)
        if len(self._window) < count:
            raise CheckpointError(f"{self.name} became shorter while it was being read.")
