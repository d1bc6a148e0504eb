"""Text of running requests: what the engine loop writes and an API handler reads."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec

from engine.core.request import Event, FinishReason, Request
from engine.text.detokenizer import Detokenizer
from engine.text.stops import StopMatcher
from engine.text.tokenizer import TextTokenizer


class Delta(msgspec.Struct, frozen=True):
    """What one step added to one answer. The last delta of an answer, and only that, has `finish`;
    `error` is a sentence when `finish` is `error`.
    """

    index: int
    text: str
    finish: FinishReason | None = None
    error: str = ""


class Answer:
    """One request's text so far."""

    def __init__(self, index: int, tokenizer: TextTokenizer, stops: Sequence[str]) -> None:
        self.index = index
        self._detokenizer = Detokenizer(tokenizer)
        self._stops = StopMatcher(stops)

    def take(self, event: Event) -> Delta:
        """Turn an event into text. `finish` is `stop` once a stop string has appeared."""
        text = ""
        if event.token is not None:
            text = self._stops.feed(self._detokenizer.feed([event.token]))
        finish = event.finish
        if self._stops.matched is not None:
            finish = "stop"
        elif finish is not None:
            text += self._stops.flush()
        return Delta(self.index, text, finish, event.request.error)


class Generation:
    """The answers to one API request, as a stream of deltas that ends after the last finish."""

    def __init__(self, requests: list[Request]) -> None:
        self.requests = requests
        self._deltas: asyncio.Queue[Delta] = asyncio.Queue()
        self._open = len(requests)

    def put(self, delta: Delta) -> None:
        self._deltas.put_nowait(delta)

    async def __aiter__(self) -> AsyncIterator[Delta]:
        while self._open:
            delta = await self._deltas.get()
            self._open -= delta.finish is not None
            yield delta

    @property
    def prompt_tokens(self) -> int:
        return sum(len(request.prompt) for request in self.requests)

    @property
    def completion_tokens(self) -> int:
        return sum(len(request.emitted) for request in self.requests)

    @property
    def cached_tokens(self) -> int:
        return sum(request.cached_tokens or 0 for request in self.requests)
