"""Decides what every step computes. Pure: no clock, no sockets, no tensors.

Caller: the head's engine loop, one thread. `schedule()` gives the next step to send to the ranks,
`apply()` takes its result. Decode rows come first, then prefill in chunks, under one token budget.
When blocks run out, the last in rank loses its own and its request is computed again later from
prompt and answer so far.

A step is sent while the one before it runs: its rows may compute tokens that are being drawn
(PENDING). Where that token turns out to end the answer, the row was for nothing and its result is
dropped. In a pipeline there is instead a step for each stage, and no sequence decodes in two.

Who goes first: the lower priority, and of one priority who came first. Waiting lifts a request, so
that nobody starves. No step costs more because more requests wait.
"""

from collections import deque
from collections.abc import Collection

from engine.config import EngineConfig
from engine.core.blocks import BlockPool
from engine.core.cap import BatchCap
from engine.core.counters import Counters
from engine.core.flight import Flight
from engine.core.picker import Picker
from engine.core.request import Event, FinishReason, Request
from engine.core.roster import Roster
from engine.core.sequence import Sequence
from engine.errors import ProtocolError
from engine.errors import gettext_noop as _
from engine.protocol.steps import Result, Step

OVERLAPPED = 2
"""Steps in flight at once without a pipeline: one that runs, and the one after it."""


class Scheduler:
    def __init__(self, config: EngineConfig, context_length: int, *, epoch: int = 0) -> None:
        """With as many blocks as the settings allow; `restart` corrects that."""
        self.config = config
        self.epoch = epoch
        self.depth = max(config.plan.pp, OVERLAPPED)
        """Steps in flight at once."""
        self.cap = BatchCap(config.max_batch_size, config.target_itl)
        longest = config.max_model_len or context_length
        self._roster = Roster(longest, config.max_waiting, config.num_kv_blocks)
        self._picker = Picker(config, self.cap, self._roster)
        self._flights: deque[Flight] = deque()
        self._landed_at = 0.0
        self._next_step = 0

    @property
    def capacity(self) -> int:
        """Longest sequence in tokens, prompt and answer together."""
        return self._roster.limits.capacity

    @property
    def running(self) -> int:
        return len(self._roster.residents)

    @property
    def waiting(self) -> int:
        return len(self._roster.queue)

    @property
    def in_flight(self) -> int:
        return len(self._flights)

    @property
    def pool(self) -> BlockPool:
        return self._roster.residents.pool

    @property
    def counters(self) -> Counters:
        return self._roster.counters

    @counters.setter
    def counters(self, counters: Counters) -> None:
        self._roster.counters = counters

    def add(self, request: Request) -> None:
        """Queue a request; raises RequestError when it could never run or the queue is full."""
        self.add_all([request])

    def let_wait(self, most: int) -> None:
        """So many requests may queue from now on; those that do stay."""
        self._roster.let_wait(most)

    def add_all(self, requests: Collection[Request]) -> None:
        """Queue all of these; raises RequestError and queues none when one is refused."""
        self._roster.enter(requests)

    def end(self, request_id: str, finish: FinishReason, error: str = "") -> Event | None:
        """End a request now, whatever it does; its blocks are free on return. None: not open."""
        return next(iter(self._roster.end([request_id], finish, error)), None)

    def end_all(self, finish: FinishReason, error: str) -> list[Event]:
        return self._roster.end_all(finish, error)

    def interrupted(self, limit: int) -> list[Event]:
        """The epoch ended with a fault. Requests that were being computed whenever the last
        `limit` epochs ended, without a token in between, may be its cause: they end with an error.
        """
        flying = dict.fromkeys(s for flight in self._flights for s in flight.sequences)
        suspects = [sequence.request for sequence in flying if not sequence.ended]
        for request in suspects:
            request.fruitless += 1
        culprits = [request.id for request in suspects if request.fruitless >= limit]
        why = f"The engine failed {limit} times in a row while it computed this answer."
        return self._roster.end(culprits, "error", why)

    def restart(self, epoch: int, blocks: int) -> list[Event]:
        """The ranks are new, and hold nothing: every open request waits again, in its old place,
        to be computed from prompt and answer so far. Steps count from 0 again.

        The pool has `blocks` from now on; the requests that do not fit into it end with an error.
        """
        self.epoch, self._next_step = epoch, 0
        self._flights.clear()
        return self._roster.restart(blocks)

    def schedule(self, now: float) -> Step | None:
        """The next step, or None when nothing can be computed before a result arrives."""
        if len(self._flights) >= self.depth:
            return None
        draft = self._picker.draft(self._flights, now)
        if draft.empty:
            return None
        residents = self._roster.residents
        gone = residents.take_released()
        step, flight = draft.launch(self.epoch, self._next_step, gone, now)
        residents.prompts += [s for s, _count in draft.prompts if s.unread]
        self._next_step += 1
        self._flights.append(flight)
        self.counters.steps += 1
        return step

    def apply(self, result: Result, now: float) -> list[Event]:
        """Take the oldest step's result; raises ProtocolError when it is not that step's."""
        if not self._flights or self._flights[0].n != result.n:
            raise ProtocolError(
                _("A result for step %(step)s arrived out of order."), step=result.n
            )
        flight = self._flights.popleft()
        rows = flight.drawn(result)
        flight.keep_scores(result)
        if self.cap.moves:
            self._observe(flight, now)
        failed = frozenset(result.failed)
        events = self._read(flight, result, failed) if flight.chunks else []
        ready, accepted = self._roster.residents.ready, 0
        for sequence, token, report in rows:
            if sequence.ended:
                continue
            if failed and sequence.id in failed:
                events.append(self._fail(sequence, result))
                continue
            if sequence.length >= sequence.full_at:
                sequence.publish(self.pool, sequence.length)
            accepted += 1
            sequence.length += 1
            request = sequence.request
            finish = request.accept(token, now)
            if finish is not None:
                events.append(self._roster.leave(sequence, finish, "", token, report))
                continue
            if sequence.computed < sequence.length:
                sequence.last = token
                ready.append(sequence)
            events.append(Event(request, token, None, report))
        self.counters.generated_tokens += accepted
        return events

    def audit(self) -> None:
        """Check the block books against the running sequences; raises IntegrityError."""
        self._roster.residents.audit()

    def _observe(self, flight: Flight, now: float) -> None:
        """What a token took. A step that was sent early ran only once the one before it ended; in
        a pipeline the next token waits for all of its own step."""
        since = flight.sent_at
        if self.config.plan.pp == 1:
            since = max(since, self._landed_at)
        self._landed_at = now
        if not flight.chunks:
            self.cap.observe(len(flight.drawing), now - since)

    def _read(self, flight: Flight, result: Result, failed: frozenset[int]) -> list[Event]:
        """After chunks of prompts that draw no token."""
        events: list[Event] = []
        for chunk in flight.chunks:
            sequence = chunk.sequence
            if chunk.samples or sequence.ended:
                continue
            if sequence.id in failed:
                events.append(self._fail(sequence, result))
                continue
            sequence.publish(self.pool, chunk.stop)
            if chunk.last:
                events.append(self._roster.leave(sequence, "length"))
        return events

    def _fail(self, sequence: Sequence, result: Result) -> Event:
        self.pool.retract(sequence.table)
        sequence.request.refused = sequence.id in result.reasons
        why = "The model produced numbers that are not finite."
        return self._roster.leave(sequence, "error", result.reasons.get(sequence.id, why))
