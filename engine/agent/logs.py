"""What one process printed: its last lines, and the lines not yet sent."""

from collections import deque

from engine.logs import read_line

TAIL_LINES = 200
BATCH_LINES = 100
"""Lines sent at a time; with four batches a second, a flood costs at most this much."""


class LogBuffer:
    def __init__(self) -> None:
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._unsent: deque[str] = deque(maxlen=BATCH_LINES)
        self._left_out = 0

    def append(self, line: str, fresh: bool = True) -> None:
        """A line that is not fresh was sent before, by another agent. The tail is for people, and
        holds the words of a JSON line."""
        self._tail.append(read_line(line).text)
        if not fresh:
            return
        if len(self._unsent) == BATCH_LINES:
            self._left_out += 1
        self._unsent.append(line)

    @property
    def tail(self) -> list[str]:
        return list(self._tail)

    @property
    def last(self) -> str:
        return self._tail[-1] if self._tail else ""

    def take(self) -> list[str]:
        """The lines to send now, oldest first; what did not fit is counted, never hidden."""
        lines = list(self._unsent)
        if self._left_out:
            lines.insert(0, f"({self._left_out} lines left out)")
        self._unsent.clear()
        self._left_out = 0
        return lines
