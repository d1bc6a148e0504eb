"""Text of running requests: what the engine loop writes and an API handler reads."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence, Set
from typing import Literal

import msgspec

from engine.core.request import Event, FinishReason, Request
from engine.protocol.steps import TokenLogprobs
from engine.text.detokenizer import Detokenizer
from engine.text.stops import StopMatcher
from engine.text.tokenizer import TextTokenizer

BEAT_SECONDS = 2.0
"""Between two signs of life of an answer that does not move."""


class Token(msgspec.Struct, frozen=True):
    """One token whose text was sent: where that text begins and ends in the answer, in
    characters. What ends an answer unseen (end of sequence, a stop string) is no such token."""

    id: int
    start: int
    end: int
    logprobs: TokenLogprobs | None = None


class Delta(msgspec.Struct, frozen=True):
    """What one step added to one answer. The last delta of an answer, and only that, has `finish`;
    `error` is a sentence when `finish` is `error`.

    `tokens` keep pace with the text: held-back text holds its tokens back too.
    """

    index: int
    text: str
    finish: FinishReason | None = None
    error: str = ""
    tokens: Sequence[Token] = ()
    refused: bool = False
    """The error is the request's own fault."""
    drawn: int | None = None
    """The token of this step, shown or not; None where it drew none."""
    stopped_by: str | None = None
    """The stop string that ended the answer; None where none did."""


class Notice(msgspec.Struct, frozen=True):
    """What happens to an answer between two of its tokens: its ranks are being started anew, or are
    back; or nothing, for a while."""

    kind: Literal["paused", "resumed", "waiting"]


class Answer:
    """One request's text so far."""

    def __init__(
        self,
        index: int,
        tokenizer: TextTokenizer,
        stops: Sequence[str],
        shown: Set[int] = frozenset(),
    ) -> None:
        self.index = index
        self._detokenizer = Detokenizer(tokenizer, shown)
        self._stops = StopMatcher(stops)
        self._length = 0
        """Characters made of the tokens, sent or held."""
        self._sent = 0
        self._held: deque[Token] = deque()

    def take(self, event: Event) -> Delta:
        """Turn an event into text. `finish` is `stop` once a stop string has appeared."""
        text = ""
        # A token that stops an answer is no part of it.
        if event.token is not None and event.finish != "stop":
            text = self._stops.feed(self._read(event.token, event))
        finish = event.finish
        if self._stops.matched is not None:
            finish = "stop"
        elif finish is not None:
            text += self._stops.flush()
        self._sent += len(text)
        request, tokens = event.request, self._release(finish)
        error, refused = request.error, request.refused
        return Delta(
            self.index, text, finish, error, tokens, refused, event.token, self._stops.matched
        )

    def _read(self, token: int, event: Event) -> str:
        text = self._detokenizer.feed([token])
        start, self._length = self._length, self._length + len(text)
        self._held.append(Token(token, start, self._length, event.logprobs))
        return text

    def _release(self, finish: FinishReason | None) -> list[Token]:
        released: list[Token] = []
        while self._held and self._is_out(self._held[0], finish):
            released.append(self._held.popleft())
        return released

    def _is_out(self, token: Token, finish: FinishReason | None) -> bool:
        if self._stops.matched is not None:
            return token.start < self._sent
        if finish is not None:
            return True
        torn = self._detokenizer.holds and token.end == self._length
        return token.end <= self._sent and not torn


class Generation:
    """The answers to one API request, as a stream of deltas that ends after the last finish.

    Every reader gets all of it from the beginning, so that one who lost the connection can come
    back.
    """

    def __init__(self, requests: list[Request], copies: int = 1) -> None:
        """`copies` requests in a row share one prompt."""
        self.requests = requests
        self.paused = False
        self._told: list[Delta | Notice] = []
        self._news = asyncio.Event()
        self._firsts = requests[::copies]

    def put(self, news: Delta | Notice) -> None:
        if isinstance(news, Notice):
            self.paused = news.kind == "paused"
        self._told.append(news)
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[Delta | Notice]:
        """Notices from before the reader came are not repeated to it. That nothing moves is, every
        few seconds."""
        missed, at, open_ = len(self._told), 0, len(self.requests)
        while open_:
            if at == len(self._told):
                if not await self._has_more():
                    yield Notice("paused" if self.paused else "waiting")
                continue
            news = self._told[at]
            at += 1
            if isinstance(news, Delta):
                open_ -= news.finish is not None
            elif at <= missed:
                continue
            yield news

    async def _has_more(self) -> bool:
        """Wait for news; False when there was none for a while."""
        self._news.clear()
        try:
            async with asyncio.timeout(BEAT_SECONDS):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    @property
    def ended(self) -> bool:
        return all(request.finish is not None for request in self.requests)

    @property
    def told(self) -> list[Delta]:
        """All deltas so far."""
        return [news for news in self._told if isinstance(news, Delta)]

    @property
    def prompt_tokens(self) -> int:
        """Of each prompt once, however many answers it has."""
        return sum(len(request.prompt) for request in self._firsts)

    @property
    def completion_tokens(self) -> int:
        return sum(len(request.emitted) for request in self.requests)

    @property
    def cached_tokens(self) -> int:
        return sum(request.cached_tokens or 0 for request in self._firsts)
