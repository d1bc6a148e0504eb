"""One API request and its answers, which can be told more than once."""

from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from engine.errors import EngineError, RankError, RequestError
from engine.head.answer import Delta, Generation, Notice
from engine.head.api.marks import Counts, Marks
from engine.head.api.origin import Origin
from engine.head.api.replies import DONE, Json, Reply, error_body
from engine.head.api.requests import Asked


class Exchange(msgspec.Struct, frozen=True):
    asked: Asked
    generation: Generation
    origin: Origin
    shape: Callable[[], Reply]
    """A fresh one shapes all of the answers from their beginning."""
    over: Callable[[], bool]
    """Whether the engine itself has ended, so that another one may go on with the answers."""
    path: str
    payload: bytes

    @property
    def reported(self) -> bool:
        """Whether more is told of a token than its text."""
        wanted = self.asked.wanted
        return wanted.logprobs is not None or wanted.prompt_logprobs is not None

    def marks(self, *, again: bool = False) -> Marks:
        """For a gateway; `again`: for one that does not know what was asked."""
        asked = b""
        if again:
            payload = self.payload.replace(b"\r", b" ").replace(b"\n", b" ")
            body = {"path": self.path, "request": msgspec.Raw(payload)}
            asked = b": r " + msgspec.json.encode(body) + b"\n"
        answers = len(self.generation.requests)
        return Marks(self.origin, answers, asked, held=self.reported)


class Telling:
    """The answers as server-sent events, for a reader who has `sent` of their chunks already."""

    def __init__(self, exchange: Exchange, marks: Marks | None, sent: Sequence[int] = ()) -> None:
        """Without `marks` it is what OpenAI's clients know, and nothing else."""
        self._asked = exchange.asked
        self._over = exchange.over
        self._reported = exchange.reported
        self._generation = exchange.generation
        self._shape = exchange.shape()
        self._marks = marks
        self._answers = len(exchange.generation.requests)
        self._counts = Counts(exchange.origin.base, sent, self._answers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """One event a step; an error is the last one before the end of the stream."""
        head = b"".join(map(self._block, range(self._answers), self._shape.opening()))
        async for news in self._generation:
            if isinstance(news, Notice):
                yield self._comment(news)
            elif news.finish == "error":
                yield head + self._event(error_body(self._fault(news))[1]) + DONE
                return
            elif told := head + self._chunk(news):
                yield told
                head = b""
        yield head + self._closing() + DONE

    async def whole(self) -> AsyncIterator[bytes]:
        """The answers in one event, in the end; until then only what a journal needs."""
        async for news in self._generation:
            if isinstance(news, Notice):
                yield self._comment(news)
                continue
            if news.finish == "error":
                status, body = error_body(self._fault(news))
                yield b": status %d\n" % status + self._event(body) + DONE
                return
            self._shape.add(news)
            if not self._reported:
                self._mark(news, 1)
            if self._marks is not None and (lines := self._marks.take()):
                yield lines + b"\n"
        yield self._event(self._shape.whole()) + DONE

    def _chunk(self, delta: Delta) -> bytes:
        chunk = self._shape.chunk(delta)
        self._mark(delta, chunk.told)
        return self._block(delta.index, chunk.body)

    def _block(self, index: int, body: Json) -> bytes:
        """Nothing where the reader has it already."""
        return self._event(self._metered(body), number=True) if self._counts.is_new(index) else b""

    def _closing(self) -> bytes:
        if not self._asked.include_usage or not self._counts.is_new(self._answers):
            return b""
        return self._event(self._shape.closing(), number=True)

    def _event(self, body: Json, *, number: bool = False) -> bytes:
        data = b"data: " + msgspec.json.encode(body) + b"\n\n"
        if self._marks is None:
            return data
        return self._marks.take() + (self._counts.line if number else b"") + data

    def _comment(self, notice: Notice) -> bytes:
        """A line, and no event. That nothing happens is news to a gateway alone."""
        if notice.kind == "waiting" and self._marks is None:
            return b""
        return f": {notice.kind}\n".encode()

    def _mark(self, delta: Delta, told: int) -> None:
        if self._marks is not None:
            cached = self._generation.requests[delta.index].cached_tokens
            self._marks.add(delta, told, cached)

    def _fault(self, delta: Delta) -> EngineError:
        if self._marks is not None and self._over():
            return RequestError(delta.error, code="engine_over", status=503)
        return fault(delta)

    def _metered(self, chunk: Json) -> Json:
        """With what it says of the usage: nothing, or null before the last, or the count so far."""
        if self._asked.usage_in_chunks:
            return chunk | {"usage": self._shape.usage()}
        return chunk | {"usage": None} if self._asked.include_usage else chunk


def fault(delta: Delta) -> EngineError:
    """Why an answer failed, and whose fault it is."""
    if delta.refused:
        return RequestError(delta.error, code="impossible_form")
    return RankError(delta.error)
