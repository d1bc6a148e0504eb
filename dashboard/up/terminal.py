"""What a person sees while everything starts: one line a stage, in place on a terminal."""

import contextlib
import shutil
import sys
import time
from collections.abc import Iterator
from typing import TextIO

PLAIN_SECONDS = 2.0
"""Without a terminal, progress is repeated at most this often."""


class Terminal:
    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._label = ""
        self._detail = ""
        self._last_plain = 0.0

    @contextlib.contextmanager
    def stage(self, label: str) -> Iterator[None]:
        """Shows `label`, then progress, then the seconds it took."""
        started = time.monotonic()
        self._label, self._detail, self._last_plain = label, "", started
        self._redraw()
        try:
            yield
        except BaseException:
            self._leave(f"{label} …")
            raise
        self._leave(f"{label} … {time.monotonic() - started:.1f} s")

    def progress(self, detail: str) -> None:
        if detail == self._detail or not detail:
            return
        self._detail = detail
        now = time.monotonic()
        if self._live:
            self._redraw()
        elif now - self._last_plain >= PLAIN_SECONDS:
            self._last_plain = now
            self._write(f"{self._label}: {detail}\n")

    def line(self, text: str) -> None:
        """A line of its own; a stage in progress goes on below it."""
        self._write(f"\r\x1b[K{text}\n" if self._live else f"{text}\n")
        self._redraw()

    def _redraw(self) -> None:
        if self._live and self._label:
            text = f"{self._label}: {self._detail}" if self._detail else f"{self._label} …"
            width = shutil.get_terminal_size().columns - 1
            self._write(f"\r\x1b[K{text[:width]}")

    def _leave(self, text: str) -> None:
        self._label = ""
        self.line(text)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # A terminal that has gone ends nothing but the talk.
            self._stream.write(text)
            self._stream.flush()
