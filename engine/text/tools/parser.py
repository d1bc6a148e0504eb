"""Tool calls out of an answer's text, piece by piece, wherever its tokens were cut.

A style is a small machine of states; each state consumes the front of the buffer and says whether
to go on. Until a call's name and the start of its arguments are there, its text stays in the
buffer, so what turns out to be no call is content again, complete and in order.
"""

from collections.abc import Callable

from engine.text.stops import overlap
from engine.text.tools.json_span import JsonSpan
from engine.text.tools.pieces import CallArguments, CallStart, Piece, Text


class CallParser:
    """One answer. White space around calls is dropped."""

    openers: tuple[str, ...] = ()
    """What a call begins with."""

    def __init__(self) -> None:
        self._buffer = ""
        self._pieces: list[Piece] = []
        self._state: Callable[[], bool] = self._content
        self._span = JsonSpan()
        self._last: Piece = Text("")
        self._passed = ""
        self.calls = 0
        self.unfinished = False
        """Whether a call's arguments have begun and not ended."""

    @property
    def held(self) -> int:
        """Characters that were fed and not yet told."""
        return len(self._buffer)

    def feed(self, text: str) -> list[Piece]:
        self._buffer += text
        while self._state():
            pass
        return self._drain()

    def finish(self) -> list[Piece]:
        """The answer has ended. A call that had not begun is content after all."""
        leftover, self._buffer = self._buffer, ""
        if self.calls:
            leftover = leftover.rstrip()
        if self._state not in (self._arguments, self._tail, self._after):
            self._say(leftover)
        return self._drain()

    def _content(self) -> bool:
        if self.calls and not self._after_text:
            self._buffer = self._buffer.lstrip()
        found = [at for opener in self.openers if (at := self._buffer.find(opener)) >= 0]
        if found:
            self._say(self._buffer[: min(found)].rstrip())
            self._buffer = self._buffer[min(found) :]
            self._state = self._head
            return True
        keep = max((overlap(self._buffer, opener) for opener in self.openers), default=0)
        keep = len(self._buffer) - len(self._buffer[: len(self._buffer) - keep].rstrip())
        self._say(self._buffer[: len(self._buffer) - keep])
        self._buffer = self._buffer[len(self._buffer) - keep :]
        return False

    def _head(self) -> bool:
        """At an opener, or where the next call of a list must begin: `_begin`, `_whole`,
        `_refuse`, or False to wait for more text."""
        raise NotImplementedError

    def _arguments(self) -> bool:
        end = self._span.feed(self._buffer)
        if end:
            self._tell(CallArguments(self.calls - 1, self._buffer[:end]))
        self._buffer = self._buffer[end:]
        if not (self._span.done or self._span.broken):
            return False
        self.unfinished = self._span.broken
        self._state = self._content if self._span.broken else self._tail
        return True

    def _tail(self) -> bool:
        """Behind a call's arguments: the rest of the call."""
        self._state = self._after
        return True

    def _after(self) -> bool:
        """Behind a call."""
        raise NotImplementedError

    def _begin(self, name: str, arguments_at: int) -> bool:
        """A call whose arguments, an object, start there in the buffer."""
        self._tell(CallStart(self.calls, name))
        self.calls += 1
        self.unfinished = True
        self._buffer = self._buffer[arguments_at:]
        self._span = JsonSpan()
        self._state = self._arguments
        return True

    def _whole(self, name: str, arguments: str, end: int) -> bool:
        """A call that was complete before it could be told; it ends there in the buffer."""
        self._tell(CallStart(self.calls, name))
        self._tell(CallArguments(self.calls, arguments))
        self.calls += 1
        self._buffer = self._buffer[end:]
        self._state = self._after
        return True

    def _refuse(self) -> bool:
        """No call: the opener is ordinary text."""
        opener = max((o for o in self.openers if self._buffer.startswith(o)), key=len, default="")
        self._say(self._buffer[: len(opener)])
        self._buffer = self._buffer[len(opener) :]
        self._state = self._content
        return True

    def _pass(self, *literals: str) -> bool | None:
        """Go past white space and one of these; None while more text could bring it."""
        text = self._buffer.lstrip()
        for literal in literals:
            if text.startswith(literal):
                self._buffer = text[len(literal) :]
                self._passed = literal
                return True
        return None if any(literal.startswith(text) for literal in literals) else False

    def _say(self, text: str) -> None:
        if text:
            self._tell(Text(text))

    def _tell(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self._last = piece

    @property
    def _after_text(self) -> bool:
        return isinstance(self._last, Text)

    def _drain(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces
