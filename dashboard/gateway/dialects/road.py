"""The way of a translated request: the one that every chat takes."""

from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from dashboard.gateway.balance import leading_text
from dashboard.gateway.blocks import Comment
from dashboard.gateway.dialects.asked import write
from dashboard.gateway.directory import targets_of
from dashboard.gateway.errors import ApiError
from dashboard.gateway.hold import Request
from dashboard.gateway.passage import Passage
from dashboard.gateway.pieces import Piece, count_of, pieces_of, refusal
from dashboard.gateway.upstream import Broken, ask, nobody

Json = dict[str, Any]
CHAT = "/v1/chat/completions"
TOKENIZE = "/tokenize"


class Reply(Protocol):
    """Tells a chat's answer in one dialect."""

    def events(self, pieces: Iterable[Piece]) -> bytes:
        """As server-sent events; the first also tells that it begins."""

    def ending(self) -> bytes:
        """The last events of an answer that came to its end."""

    def failed(self, error: ApiError) -> bytes:
        """The last event of one that did not."""

    def whole(self, pieces: Iterable[Piece]) -> Json: ...


@dataclass(frozen=True)
class Translated:
    chat: Json
    reply: Reply
    stream: bool
    """Whether the caller wants events."""
    in_chunks: bool = False
    """Whether only chunks tell the engine's answer in full."""


def chat_request(asked: Translated, request_id: str, traceparent: str) -> Request:
    chat, stream = dict(asked.chat), asked.stream or asked.in_chunks
    if stream:
        # The beginning of a message tells how long the prompt is.
        options = {"include_usage": True, "continuous_usage_stats": True}
        chat |= {"stream": True, "stream_options": options}
    return Request(
        route=chat["model"],
        path=CHAT,
        body=write(chat),
        stream=stream,
        id=request_id,
        key=leading_text(chat),
        traceparent=traceparent,
    )


async def whole(passage: Passage, reply: Reply) -> Json:
    """The answer of an open passage. Raises ApiError where the engine refused or failed."""
    if passage.request.stream:
        pieces: list[Piece] = []
        async with aclosing(passage.blocks()) as blocks:
            async for block in blocks:
                if not isinstance(block, Comment):
                    pieces += pieces_of(block.data)
        return reply.whole(pieces)
    found = await passage.whole()
    if found.status >= 400:
        raise refusal(found.status, found.body)
    return reply.whole(pieces_of(found.body))


class Retelling:
    """A streamed answer in another dialect. Never a silent end and never an endless wait."""

    def __init__(self, passage: Passage, reply: Reply) -> None:
        self._passage = passage
        self._reply = reply

    def close(self) -> None:
        self._passage.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        reply = self._reply
        try:
            async with aclosing(self._passage.blocks()) as blocks:
                async for block in blocks:
                    if isinstance(block, Comment):
                        yield block.encode()
                        continue
                    if told := reply.events(pieces_of(block.data)):
                        yield told
            yield reply.ending()
        except ApiError as error:
            yield reply.failed(error)


async def measured(chat: Json, request_id: str) -> int:
    """The tokens of a chat's prompt, as the first head that answers counts them."""
    route, refused = chat["model"], None
    body = write(chat)
    for target in await targets_of(route, leading_text(chat)):
        try:
            answer = await ask(target, TOKENIZE, body, stream=False, request_id=request_id)
            told = await answer.read()
        except Broken as error:
            refused = error
            continue
        if answer.status != 200:
            raise refusal(answer.status, told)
        return count_of(told)
    raise refused or nobody(route)
