"""Every open request, waiting or running: how it comes, gets blocks, loses them and goes. Pure."""

from collections.abc import Collection

from engine.config import BLOCK_SIZE
from engine.core.counters import Counters
from engine.core.limits import Limits
from engine.core.queue import Queue, Waiting, enter, reenter
from engine.core.request import Event, FinishReason, Request
from engine.core.residents import Residents
from engine.core.sequence import Sequence
from engine.errors import RequestError
from engine.protocol.steps import TokenLogprobs


class Roster:
    def __init__(self, longest: int, max_waiting: int, blocks: int) -> None:
        """`longest` is what a sequence may have in tokens where the blocks suffice."""
        self._longest = longest
        self._max_waiting = max_waiting
        self._open: dict[str, Waiting | Sequence] = {}
        self._arrivals = 0
        self.counters = Counters()
        self.queue = Queue()
        self.limits: Limits
        self._size(blocks)

    def let_wait(self, most: int) -> None:
        """So many requests may queue from now on; those that do stay."""
        self._max_waiting = most
        self.limits = Limits(self.limits.capacity, most)

    def _size(self, blocks: int) -> None:
        self.residents = Residents(blocks)
        self.limits = Limits(min(self._longest, blocks * BLOCK_SIZE), self._max_waiting)

    def enter(self, requests: Collection[Request]) -> None:
        """Queue all of these; raises RequestError and queues none when one is refused."""
        for request in requests:
            if request.id in self._open:
                raise RequestError(f"A request with the id {request.id!r} is already running.")
        self.limits.check(requests, len(self.queue))
        for request in requests:
            self._wait(enter(request, self._arrivals))
            self._arrivals += 1

    def begin(self, waiting: Waiting, level: int, now: float) -> Sequence | None:
        """Have one run that was taken from the queue; None when it lacks memory."""
        sequence = self.residents.start(waiting, level)
        if sequence is None:
            return None
        request = sequence.request
        self._open[request.id] = sequence
        if request.cached_tokens is None:
            request.cached_tokens = sequence.computed
            request.admitted_at = now
            self.counters.prompt_tokens += len(request.prompt)
            self.counters.cached_tokens += sequence.computed
        return sequence

    def preempt(self, sequence: Sequence) -> None:
        """Take its blocks; the request waits again, in its old place."""
        self.counters.preemptions += 1
        sequence.request.preemptions += 1
        self.residents.drop(sequence)
        self._wait(reenter(sequence.request, sequence.turn, sequence.names))

    def restart(self, blocks: int) -> list[Event]:
        """Nobody runs and nothing is held; there are `blocks` now. Those that can never fit any
        more end with an error."""
        self._size(blocks)
        for held in list(self._open.values()):
            if isinstance(held, Sequence):
                held.ended = True
                self._wait(reenter(held.request, held.turn, held.names))
        why = f"Memory is left for {self.limits.capacity} tokens only."
        lost = [h.request for h in self._open.values() if not self.limits.holds(h.request)]
        return self.end([request.id for request in lost], "error", why)

    def end(self, ids: Collection[str], finish: FinishReason, error: str) -> list[Event]:
        """End these now, whatever they do; those that are not open give no event."""
        events: list[Event] = []
        for held in [self._open[request_id] for request_id in ids if request_id in self._open]:
            if isinstance(held, Sequence):
                events.append(self.leave(held, finish, error))
            else:
                self.queue.discard(held)
                events.append(self._finish(held.request, finish, error))
        return events

    def end_all(self, finish: FinishReason, error: str) -> list[Event]:
        return self.end(list(self._open), finish, error)

    def leave(
        self,
        sequence: Sequence,
        finish: FinishReason,
        error: str = "",
        token: int | None = None,
        report: TokenLogprobs | None = None,
    ) -> Event:
        """The end of one that runs, with its last token; its blocks are free on return."""
        self.residents.drop(sequence)
        return self._finish(sequence.request, finish, error, token, report)

    def _wait(self, waiting: Waiting) -> None:
        self._open[waiting.request.id] = waiting
        self.queue.push(waiting)

    def _finish(
        self,
        request: Request,
        finish: FinishReason,
        error: str = "",
        token: int | None = None,
        report: TokenLogprobs | None = None,
    ) -> Event:
        del self._open[request.id]
        request.finish = finish
        request.error = error
        self.counters.count_end(finish)
        return Event(request, token, finish, report)
