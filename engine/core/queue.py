"""Requests that hold no memory yet, in the order they get their turn. Pure."""

import heapq
from dataclasses import dataclass, field

from engine.config import BLOCK_SIZE
from engine.core.prefix import chain
from engine.core.request import Request

AGEING_SECONDS = 30.0
"""Waiting this long lifts a request by one priority."""

Turn = tuple[float, int]


@dataclass(slots=True, eq=False)
class Waiting:
    """A request in the queue, new or preempted."""

    request: Request
    turn: Turn
    """The smallest goes first. Every waiting request ages alike, so that how any two of them
    compare never changes: one priority counts as having come AGEING_SECONDS later."""
    names: list[bytes]
    """Hashes of the full blocks before the last token, which is always computed again."""
    passed: int = 0
    """Later requests that started while this one lacked memory."""
    gone: bool = False

    @property
    def length(self) -> int:
        """Tokens to compute: prompt and answer so far."""
        return len(self.request.prompt) + len(self.request.emitted)

    @property
    def shareable(self) -> list[bytes]:
        """Names of blocks that need not be computed, if they are there. A prompt that is scored
        needs all but what was scored before."""
        if self.request.share_prefix:
            return self.names
        return self.names[: len(self.request.prompt_logprobs) // BLOCK_SIZE]

    def aged(self, now: float) -> int:
        """Its priority, lifted by the time since it arrived."""
        waited = max(0.0, now - self.request.arrived_at)
        return self.request.priority - int(waited / AGEING_SECONDS)


def enter(request: Request, serial: int) -> Waiting:
    """A request's first time in the queue; `serial` parts those that arrived at one moment."""
    turn = (request.arrived_at + request.priority * AGEING_SECONDS, serial)
    return reenter(request, turn, [])


def reenter(request: Request, turn: Turn, names: list[bytes]) -> Waiting:
    """Back in the queue, in its old place; `names` are the leading block hashes known."""
    tokens = request.history
    full = (len(tokens) - 1) // BLOCK_SIZE
    return Waiting(request, turn, chain(request.namespace, tokens, full, names[:full]))


@dataclass(slots=True)
class Queue:
    """A heap; who leaves early is only marked, and swept out once the marked are the most."""

    _heap: list[tuple[Turn, Waiting]] = field(default_factory=list)
    _gone: int = 0

    def __len__(self) -> int:
        return len(self._heap) - self._gone

    def push(self, waiting: Waiting) -> None:
        heapq.heappush(self._heap, (waiting.turn, waiting))

    def head(self) -> Waiting | None:
        """Who is next."""
        while self._heap and self._heap[0][1].gone:
            heapq.heappop(self._heap)
            self._gone -= 1
        return self._heap[0][1] if self._heap else None

    def pop(self) -> Waiting:
        """Take out who is next; IndexError when nobody waits."""
        self.head()
        return heapq.heappop(self._heap)[1]

    def discard(self, waiting: Waiting) -> None:
        """Take out one that is in the queue."""
        waiting.gone = True
        self._gone += 1
        if 2 * self._gone > len(self._heap) + 64:
            self._heap = [entry for entry in self._heap if not entry[1].gone]
            heapq.heapify(self._heap)
            self._gone = 0
