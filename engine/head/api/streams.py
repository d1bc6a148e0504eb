"""Exchanges by the id their gateway gave them: each survives its connection for a while."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import RequestError
from engine.head.answer import Delta, Generation
from engine.head.api.exchange import Exchange

GRACE_SECONDS = 30.0
"""How long an answer goes on, or is kept, with nobody listening."""
MAX_ENDED = 64
"""Answers kept although they are complete, for a reader that lost the very end."""


@dataclass
class _Held:
    exchange: Exchange
    readers: int = 0
    timer: asyncio.TimerHandle | None = None
    latest: str = ""
    """Who took it up last, as they call themselves."""


class Streams:
    def __init__(self, abort: Callable[[Generation], None]) -> None:
        self._abort = abort
        self._held: dict[str, _Held] = {}

    def find(self, stream: str) -> Exchange | None:
        held = self._held.get(stream)
        return None if held is None else held.exchange

    def has_reader(self, stream: str) -> bool:
        held = self._held.get(stream)
        return held is not None and held.readers > 0

    def keep(self, stream: str, exchange: Exchange) -> None:
        """From now on it can be found. One that had its id before has lost its reader."""
        self.drop(stream)
        self._held[stream] = _Held(exchange)

    def enter(self, stream: str, reader: str = "") -> Callable[[], None]:
        """Somebody reads; call what is returned when they stop."""
        held = self._held[stream]
        held.readers += 1
        held.latest = reader
        if held.timer is not None:
            held.timer.cancel()
            held.timer = None
        return lambda: self._leave(stream, held)

    def give_up(self, stream: str, reader: str) -> bool:
        """Its reader has gone for good: end it, unless another one has taken it up since. False
        when there is no such stream."""
        held = self._held.get(stream)
        if held is not None and reader and reader != held.latest:
            return True
        return self.drop(stream)

    def drop(self, stream: str) -> bool:
        """End it at once; False when there is no such stream."""
        held = self._held.pop(stream, None)
        if held is None:
            return False
        if held.timer is not None:
            held.timer.cancel()
        generation = held.exchange.generation
        self._abort(generation)
        finished = {delta.index for delta in generation.told if delta.finish is not None}
        for index in range(len(generation.requests)):
            if index not in finished:
                generation.put(Delta(index, "", "abort"))
        return True

    def _leave(self, stream: str, held: _Held) -> None:
        held.readers -= 1
        if held.readers or self._held.get(stream) is not held:
            return
        loop = asyncio.get_running_loop()
        held.timer = loop.call_later(GRACE_SECONDS, self.drop, stream)
        self._forget_ended()

    def _forget_ended(self) -> None:
        """The oldest of the complete ones, where there are too many."""
        ended = [
            stream
            for stream, held in self._held.items()
            if not held.readers and held.exchange.generation.ended
        ]
        for stream in ended[:-MAX_ENDED]:
            self.drop(stream)


def unknown_stream() -> RequestError:
    return RequestError("There is no such stream here.", code="unknown_stream", status=404)
