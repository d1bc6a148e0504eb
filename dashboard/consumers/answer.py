"""One answer on its way to one browser: every piece sent on, measured and kept."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from channels.db import database_sync_to_async
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from dashboard import conversations
from dashboard.choices import MessageStatus
from dashboard.conversations import Turn
from dashboard.gateway.client import (
    ChatEvent,
    Paused,
    Resumed,
    chat_request,
    open_chat,
    stream_chat,
)
from dashboard.gateway.errors import ApiError
from dashboard.gateway.passage import Passage
from dashboard.gateway.patience import AWAY, patiently
from dashboard.gateway.pieces import Finished, ReasoningDelta, TextDelta, Usage
from dashboard.gateway.routes import answering_ranks
from dashboard.models import Message
from dashboard.rendering import render_markdown
from dashboard.texts import storable

KEEP_SECONDS = 2.0
LAST_KEEP_SECONDS = 120.0
"""For the database to take the answer in the end, should it be away."""
RENDER_SECONDS = 0.4
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Answering:
    """Runs one turn. Cancel its task to stop: the text so far and its metrics stay."""

    def __init__(
        self,
        turn: Turn,
        parameters: dict[str, Any],
        send: Send,
        passage: Passage | None = None,
    ) -> None:
        """`passage`: of an answer that lost its writer; it is told again from its beginning."""
        self.turn = turn
        self.ended = False
        self.left = False
        """This process ends: stopped, the answer stays open, for a page to have it taken up."""
        self._passage = passage
        self._parameters = parameters
        self._send = send
        self._asked = time.monotonic()
        self._first: float | None = None
        self._last: float | None = None
        self._rendered = self._asked
        self._pieces = 0
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._source: dict[str, Any] = {}

    async def run(self) -> None:
        """Ask and send on, to whatever end."""
        keeper = asyncio.create_task(self._keep_on(asyncio.current_task()))
        status, error = MessageStatus.FAILED, _("Something went wrong; the server’s log says what.")
        try:
            status, error = await self._outcome()
        finally:
            await self._halt(keeper)
            await self.end(status, error)

    async def _outcome(self) -> tuple[MessageStatus, str]:
        try:
            await self._send({"type": "start", "message": self.turn.answer.pk})
            await self._ask()
        except ApiError as error:
            return MessageStatus.FAILED, str(error)
        except asyncio.CancelledError:
            return MessageStatus.STOPPED, ""
        return MessageStatus.DONE, ""

    async def end(self, status: MessageStatus, error: str = "") -> None:
        """Keep what came and say how it ended; the first call counts."""
        if self.ended:
            return
        self.ended = True
        if self.left and status == MessageStatus.STOPPED:
            return
        answer = self.turn.answer
        answer.status, answer.error, answer.metrics = status, error, self._metrics()
        await _keep_at_last(answer)
        message = {
            "type": "done",
            "message": answer.pk,
            "status": status.value,
            "metrics": answer.metrics,
            "html": render_to_string("chat/_message.html", {"message": answer}),
        }
        await self._send(message)

    async def _ask(self) -> None:
        passage = self._passage or await self._open()
        try:
            route, launch = self.turn.conversation.route, passage.launch
            ranks = await patiently(answering_ranks, launch)
            self._source = {"route": route, "launch": launch, "ranks": ranks}
            if self._passage is not None:
                self.turn.answer.content = self.turn.answer.reasoning = ""
            async with aclosing(stream_chat(passage)) as events:
                async for event in events:
                    await self._take(event)
        finally:
            passage.close()

    async def _open(self) -> Passage:
        body = {"messages": self.turn.prompt, **self._parameters}
        request_id = f"chat_{uuid.uuid4().hex}"
        passage = await open_chat(chat_request(self.turn.conversation.route, body, request_id))
        self.turn.answer.stream, self.turn.answer.launch = request_id, passage.launch
        return passage

    async def _take(self, event: ChatEvent) -> None:
        match event:
            case TextDelta(text):
                text = self._clock(text)
                self.turn.answer.content += text
                await self._send({"type": "delta", "text": text})
                await self._render()
            case ReasoningDelta(text):
                text = self._clock(text)
                self.turn.answer.reasoning += text
                await self._send({"type": "reasoning", "text": text})
            case Paused():
                await self._send({"type": "paused"})
            case Resumed():
                await self._send({"type": "resumed"})
            case Finished(reason):
                self._finish_reason = reason
            case Usage():
                self._usage = event

    def _clock(self, text: str) -> str:
        """Note that a piece has come; the piece as it can be stored."""
        self._last = time.monotonic()
        self._first = self._first or self._last
        self._pieces += 1
        return storable(text)

    async def _render(self) -> None:
        """Now and then, what is there as Markdown; the browser shows later pieces as plain text."""
        if time.monotonic() - self._rendered < RENDER_SECONDS:
            return
        self._rendered = time.monotonic()
        text = self.turn.answer.content.rstrip()
        html = render_markdown(text)
        await self._send({"type": "render", "html": html, "length": _utf16_length(text)})

    async def _keep_on(self, answering: asyncio.Task[None] | None) -> None:
        """Until the end, or until nobody can read the answer any more: then it is stopped."""
        keep = database_sync_to_async(conversations.keep)
        kept = True
        while kept:
            await asyncio.sleep(KEEP_SECONDS)
            with suppress(*AWAY):  # the next time, or in the end
                kept = await keep(self.turn.answer)
        if answering is not None:
            answering.cancel()

    @staticmethod
    async def _halt(keeper: asyncio.Task[None]) -> None:
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper

    def _metrics(self) -> dict[str, Any]:
        """Absent values are None. Without the engine's own count, pieces are a lower bound."""
        if self._first is None or self._last is None:
            return {**self._source, "parameters": self._parameters}
        tokens = self._usage.completion_tokens if self._usage else self._pieces
        decoding = self._last - self._first
        if self._passage is not None:
            return {**self._source, "tokens": tokens, "finish_reason": self._finish_reason}
        return {
            **self._source,
            "parameters": self._parameters,
            "ttft_seconds": self._first - self._asked,
            "seconds": self._last - self._asked,
            "tokens": tokens,
            "tokens_counted": "engine" if self._usage else "pieces",
            "prompt_tokens": self._usage.prompt_tokens if self._usage else None,
            "tokens_per_second": (tokens - 1) / decoding if tokens > 1 and decoding > 0 else None,
            "finish_reason": self._finish_reason,
        }


async def _keep_at_last(answer: Message) -> None:
    """Nothing comes after this, so it is worth some patience."""
    deadline = time.monotonic() + LAST_KEEP_SECONDS
    while True:
        try:
            await database_sync_to_async(conversations.keep)(answer)
            return
        except AWAY:
            if time.monotonic() >= deadline:
                raise
        await asyncio.sleep(1.0)


def _utf16_length(text: str) -> int:
    """As JavaScript counts."""
    return len(text.encode("utf-16-le")) // 2
