"""From bytes that a process printed to lines."""

from collections.abc import Iterator

MAX_LINE = 2000
"""Characters of a log line that are kept."""


class LineSplitter:
    """Bytes in, whole lines out; a carriage return ends a line too (progress bars)."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[str]:
        *whole, self._rest = (self._rest + chunk).replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield from _printable(line)
        if len(self._rest) > 4 * MAX_LINE:
            yield from self.end()

    def end(self) -> Iterator[str]:
        rest, self._rest = self._rest, b""
        yield from _printable(rest)


def _printable(line: bytes) -> Iterator[str]:
    text = line.decode(errors="replace").rstrip()
    if text:
        yield text[:MAX_LINE]
