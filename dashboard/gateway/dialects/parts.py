"""What a chat answer says, piece by piece, whether it comes whole or in chunks; and the parts that
the pieces add up to."""

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from django.utils.translation import gettext as _

from dashboard.gateway.errors import ApiError


class Thought(msgspec.Struct, frozen=True):
    """More of the reasoning."""

    text: str


class Wrote(msgspec.Struct, frozen=True):
    """More of the answer."""

    text: str


class Called(msgspec.Struct, frozen=True):
    """A call of a tool begins."""

    id: str
    name: str


class Argued(msgspec.Struct, frozen=True):
    """More of the arguments of the call that began last."""

    text: str


class Scored(msgspec.Struct, frozen=True):
    """Log-probabilities of tokens, as a chat tells them."""

    tokens: list[Any]


class Ended(msgspec.Struct, frozen=True):
    reason: str
    stopped_by: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class Counted(msgspec.Struct, frozen=True):
    """Tokens so far."""

    prompt_tokens: int
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None

    @property
    def cached(self) -> int | None:
        """None where the engine does not tell."""
        details = self.prompt_tokens_details
        return details.cached_tokens if details else None

    @property
    def reasoning(self) -> int | None:
        details = self.completion_tokens_details
        return details.reasoning_tokens if details else None


Piece = Thought | Wrote | Called | Argued | Scored | Ended | Counted


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function = msgspec.field(default_factory=_Function)


class _Said(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None


class _Scores(msgspec.Struct):
    content: list[Any] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Said | None = None
    message: _Said | None = None
    logprobs: _Scores | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None


class _Failure(msgspec.Struct):
    message: str = ""
    code: str | int | None = None
    param: str | None = None


class _Chat(msgspec.Struct):
    choices: list[_Choice] = []
    usage: Counted | None = None
    error: _Failure | None = None


_chats: msgspec.json.Decoder[_Chat] = msgspec.json.Decoder(_Chat)


def pieces_of(data: bytes) -> list[Piece]:
    """Of one chunk, or of a whole answer. Raises ApiError where it tells of an error."""
    if data == b"[DONE]":
        return []
    try:
        chat = _chats.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable() from error
    if chat.error is not None:
        raise _failed(chat.error, 500)
    pieces: list[Piece] = []
    if chat.usage is not None:
        pieces.append(chat.usage)
    for choice in chat.choices:
        if choice.index == 0:
            pieces += _pieces(choice)
    return pieces


class _Length(msgspec.Struct):
    count: int


def count_of(body: bytes) -> int:
    """Of a chat's prompt. Raises ApiError for what no head of ours writes."""
    try:
        return msgspec.json.decode(body, type=_Length).count
    except msgspec.DecodeError as error:
        raise _unreadable() from error


def _unreadable() -> ApiError:
    return ApiError(_("The answer came in a form that cannot be read."), status=502)


def refusal(status: int, body: bytes) -> ApiError:
    """What a head said with a status that is no answer."""
    try:
        failure = _chats.decode(body).error
    except (msgspec.DecodeError, RecursionError):
        failure = None
    return _failed(failure or _Failure(), status)


def _failed(failure: _Failure, status: int) -> ApiError:
    text = failure.message or _("The engine refused without a reason.")
    code = None if failure.code is None else str(failure.code)
    if code == "impossible_form":
        status = 400
    return ApiError(text, status=status, code=code, param=failure.param)


def _pieces(choice: _Choice) -> list[Piece]:
    said = choice.delta or choice.message or _Said()
    pieces: list[Piece] = []
    if said.reasoning_content:
        pieces.append(Thought(said.reasoning_content))
    if said.content:
        pieces.append(Wrote(said.content))
    for call in said.tool_calls or ():
        if call.id is not None:
            pieces.append(Called(call.id, call.function.name or ""))
        if call.function.arguments:
            pieces.append(Argued(call.function.arguments))
    if choice.logprobs is not None and choice.logprobs.content:
        pieces.append(Scored(choice.logprobs.content))
    if choice.finish_reason is not None:
        stopped = choice.stop_reason
        pieces.append(Ended(choice.finish_reason, stopped if isinstance(stopped, str) else None))
    return pieces


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
        self.usage: Counted | None = None
        self.ended: Ended | None = None
        self._open: Part | None = None

    def take(self, piece: Piece) -> list[Change]:
        """What it changes, in order."""
        match piece:
            case Thought(text):
                return self._add("reasoning", text)
            case Wrote(text):
                return self._add("text", text)
            case Called(id, name):
                return self._begin(Part("call", len(self.parts), id, name))
            case Argued(text):
                return self._add("call", text)
            case Counted():
                self.usage = piece
            case Scored(tokens):
                self._score(tokens)
            case Ended():
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
