"""What a chat answer's text says: reasoning, content and tool calls."""

from collections import deque
from collections.abc import Sequence
from typing import Literal

import msgspec

from engine.core.request import FinishReason
from engine.head.answer import Delta, Token
from engine.text.reasoning import ReasoningSplitter, Split
from engine.text.tools import CallArguments, CallParser, CallStart, Piece, Text


class Spoken(msgspec.Struct, frozen=True):
    """What one step added to one chat answer; `tokens` are those whose text was told."""

    index: int
    reasoning: str
    content: str
    calls: Sequence[CallStart | CallArguments]
    finish: FinishReason | Literal["tool_calls"] | None
    tokens: Sequence[Token]


class Listener:
    """Follows one chat answer.

    An answer that ends by itself behind complete calls finishes with `tool_calls`; one that was cut
    by its limit finishes with `length`, whatever was said.
    """

    def __init__(
        self,
        index: int,
        splitter: ReasoningSplitter,
        parser: CallParser | None,
        *,
        parallel: bool = True,
        tell_reasoning: bool = True,
    ) -> None:
        self._index = index
        self._splitter = splitter
        self._parser = parser
        self._parallel = parallel
        self._tell_reasoning = tell_reasoning
        self._heard = 0
        self._tokens: deque[Token] = deque()

    def hear(self, delta: Delta) -> Spoken:
        self._heard += len(delta.text)
        self._tokens.extend(delta.tokens)
        split = self._splitter.feed(delta.text)
        pieces = self._parse(split.content)
        finish: FinishReason | Literal["tool_calls"] | None = delta.finish
        if finish is not None:
            rest = self._splitter.finish()
            split = Split(split.reasoning + rest.reasoning, "")
            pieces += self._parse(rest.content) + (self._parser.finish() if self._parser else [])
            if finish == "stop" and self._called:
                finish = "tool_calls"
        calls = [piece for piece in pieces if not isinstance(piece, Text)]
        return Spoken(
            self._index,
            split.reasoning if self._tell_reasoning else "",
            "".join(piece.text for piece in pieces if isinstance(piece, Text)),
            calls if self._parallel else [call for call in calls if call.index == 0],
            finish,
            self._told(ended=finish is not None),
        )

    def _parse(self, content: str) -> list[Piece]:
        if self._parser is None:
            return [Text(content)] if content else []
        return self._parser.feed(content)

    @property
    def _called(self) -> bool:
        parser = self._parser
        return parser is not None and parser.calls > 0 and not parser.unfinished

    def _told(self, *, ended: bool) -> list[Token]:
        held = self._splitter.held + (self._parser.held if self._parser else 0)
        told: list[Token] = []
        while self._tokens and (ended or self._tokens[0].end <= self._heard - held):
            told.append(self._tokens.popleft())
        return told
