"""What a chat answer of a head says, piece by piece, whether it comes whole or in chunks."""

from typing import Any

import msgspec
from django.utils.translation import gettext as _

from dashboard.gateway.errors import ApiError


class ReasoningDelta(msgspec.Struct, frozen=True):
    """More of what the model thinks before it answers."""

    text: str


class TextDelta(msgspec.Struct, frozen=True):
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


class Finished(msgspec.Struct, frozen=True):
    """Why the answer ended: OpenAI's `finish_reason`."""

    reason: str
    stopped_by: str | None = None
    """The stop string."""


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """Tokens so far, as the engine counted them."""

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


Piece = ReasoningDelta | TextDelta | Called | Argued | Scored | Finished | Usage


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


class Failure(msgspec.Struct):
    message: str = ""
    code: str | int | None = None
    param: str | None = None


class Chat(msgspec.Struct):
    choices: list[_Choice] = []
    usage: Usage | None = None
    error: Failure | None = None


_chats: msgspec.json.Decoder[Chat] = msgspec.json.Decoder(Chat)


def read(data: bytes) -> Chat:
    """One chunk, or a whole answer. Raises ApiError for what no head of ours writes."""
    try:
        return _chats.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable() from error


def pieces_in(chat: Chat) -> list[Piece]:
    pieces: list[Piece] = []
    for choice in chat.choices:
        if choice.index == 0:
            pieces += _pieces(choice)
    if chat.usage is not None:
        pieces.append(chat.usage)
    return pieces


def failure_in(body: bytes) -> Failure:
    """What a head said with a status that is no answer."""
    try:
        return _chats.decode(body).error or Failure()
    except (msgspec.DecodeError, RecursionError):
        return Failure()


def pieces_of(data: bytes) -> list[Piece]:
    """Of one chunk, or of a whole answer. Raises ApiError where it tells of an error."""
    if data == b"[DONE]":
        return []
    chat = read(data)
    if chat.error is not None:
        raise _failed(chat.error, 500)
    return pieces_in(chat)


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
    """The same as an error for a program."""
    return _failed(failure_in(body), status)


def _failed(failure: Failure, status: int) -> ApiError:
    text = failure.message or _("The engine refused without a reason.")
    code = None if failure.code is None else str(failure.code)
    if code == "impossible_form":
        status = 400
    return ApiError(text, status=status, code=code, param=failure.param)


def _pieces(choice: _Choice) -> list[Piece]:
    said = choice.delta or choice.message or _Said()
    pieces: list[Piece] = []
    if said.reasoning_content:
        pieces.append(ReasoningDelta(said.reasoning_content))
    if said.content:
        pieces.append(TextDelta(said.content))
    for call in said.tool_calls or ():
        if call.id is not None:
            pieces.append(Called(call.id, call.function.name or ""))
        if call.function.arguments:
            pieces.append(Argued(call.function.arguments))
    if choice.logprobs is not None and choice.logprobs.content:
        pieces.append(Scored(choice.logprobs.content))
    if choice.finish_reason is not None:
        stopped = choice.stop_reason
        pieces.append(Finished(choice.finish_reason, stopped if isinstance(stopped, str) else None))
    return pieces
