"""The parts that the pieces of a chat answer add up to."""

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from dashboard.gateway.pieces import (
    Argued,
    Called,
    Finished,
    Piece,
    ReasoningDelta,
    Scored,
    TextDelta,
    Usage,
)


@dataclass
class Part:
    """Text of one kind without a break, or one call."""

    kind: Literal["reasoning", "text", "call"]
    index: int
    id: str = ""
    name: str = ""
    texts: list[str] = field(default_factory=list)
    scores: list[Any] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)


class Opened(msgspec.Struct, frozen=True):
    part: Part


class Grew(msgspec.Struct, frozen=True):
    part: Part
    text: str


class Closed(msgspec.Struct, frozen=True):
    part: Part


Change = Opened | Grew | Closed


class Answer:
    """Adds pieces up."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.usage: Usage | None = None
        self.ended: Finished | None = None
        self._open: Part | None = None

    def take(self, piece: Piece) -> list[Change]:
        """What it changes, in order."""
        match piece:
            case ReasoningDelta(text):
                return self._add("reasoning", text)
            case TextDelta(text):
                return self._add("text", text)
            case Called(id, name):
                return self._begin(Part("call", len(self.parts), id, name))
            case Argued(text):
                return self._add("call", text)
            case Usage():
                self.usage = piece
            case Scored(tokens):
                self._score(tokens)
            case Finished():
                self.ended = piece
        return []

    def close(self) -> list[Change]:
        """The open part is complete."""
        part, self._open = self._open, None
        return [] if part is None else [Closed(part)]

    def _begin(self, part: Part) -> list[Change]:
        closed = self.close()
        self.parts.append(part)
        self._open = part
        return [*closed, Opened(part)]

    def _add(self, kind: Literal["reasoning", "text", "call"], text: str) -> list[Change]:
        changes: list[Change] = []
        if self._open is None or self._open.kind != kind:
            changes = self._begin(Part(kind, len(self.parts)))
        assert self._open is not None
        self._open.texts.append(text)
        return [*changes, Grew(self._open, text)]

    def _score(self, tokens: list[Any]) -> None:
        """Chats do not tell which kind of text a token is of; those of the answer itself count."""
        if self._open is not None and self._open.kind == "text":
            self._open.scores += tokens
