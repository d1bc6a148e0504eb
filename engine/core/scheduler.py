"""Decides what every step computes. Pure: no clock, no sockets, no tensors.

Caller: the head's engine loop, one thread. `schedule()` gives the next step to send to the ranks,
`apply()` takes its result. Decode rows come first, then prefill in chunks, under one token budget.
When blocks run out, the last in rank loses its own and its request is computed again later from
prompt and answer so far.

Who goes first: the lower priority, and of one priority who came first. Waiting lifts a request, so
that nobody starves. No step costs more because more requests wait.
"""

from collections import deque
from collections.abc import Collection, Iterable

from engine.config import BLOCK_SIZE, EngineConfig
from engine.core.blocks import BlockPool
from engine.core.cap import BatchCap
from engine.core.counters import Counters
from engine.core.draft import Draft
from engine.core.flight import Flight, Landed
from engine.core.limits import Limits
from engine.core.queue import Queue, Waiting, enter, reenter
from engine.core.request import Event, FinishReason, Request
from engine.core.residents import Residents
from engine.core.sequence import Sequence
from engine.errors import ProtocolError, RequestError
from engine.errors import gettext_noop as _
from engine.protocol.steps import Result, Step, TokenLogprobs

MAX_PASSED = 16
"""Requests that may overtake one waiting for memory before it blocks the queue."""
LOOK_AHEAD = 8
"""Requests lacking memory that are looked past in one step."""


class Scheduler:
    def __init__(self, config: EngineConfig, context_length: int, *, epoch: int = 0) -> None:
        self.config = config
        self.epoch = epoch
        self.depth = config.plan.pp
        """Steps in flight at once; their sequences are disjoint."""
        self._longest = config.max_model_len or context_length
        self._limits = self._measure(config.num_kv_blocks)
        self.cap = BatchCap(config.max_batch_size, config.target_itl)
        self.counters = Counters()
        self._residents = Residents(config.num_kv_blocks)
        self._queue = Queue()
        self._open: dict[str, Waiting | Sequence] = {}
        self._flights: deque[Flight] = deque()
        self._next_step = 0
        self._arrivals = 0

    @property
    def capacity(self) -> int:
        """Longest sequence in tokens, prompt and answer together."""
        return self._limits.capacity

    @property
    def running(self) -> int:
        return len(self._residents)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def in_flight(self) -> int:
        return len(self._flights)

    @property
    def pool(self) -> BlockPool:
        return self._residents.pool

    def add(self, request: Request) -> None:
        """Queue a request; raises RequestError when it could never run or the queue is full."""
        self.add_all([request])

    def add_all(self, requests: Collection[Request]) -> None:
        """Queue all of these; raises RequestError and queues none when one is refused."""
        for request in requests:
            if request.id in self._open:
                raise RequestError(f"A request with the id {request.id!r} is already running.")
        self._limits.check(requests, len(self._queue))
        for request in requests:
            self._wait(enter(request, self._arrivals))
            self._arrivals += 1

    def end(self, request_id: str, finish: FinishReason, error: str = "") -> Event | None:
        """End a request now, whatever it does; its blocks are free on return. None: not open."""
        held = self._open.get(request_id)
        if held is None:
            return None
        if isinstance(held, Sequence):
            return self._leave(held, finish, error)
        return self._discard(held, finish, error)

    def end_all(self, finish: FinishReason, error: str) -> list[Event]:
        events = [self.end(request_id, finish, error) for request_id in list(self._open)]
        return [event for event in events if event is not None]

    def interrupted(self, limit: int) -> list[Event]:
        """The epoch ended with a fault. Requests that were being computed whenever the last
        `limit` epochs ended, without a token in between, may be its cause: they end with an error.
        """
        events: list[Event] = []
        flying = dict.fromkeys(s for flight in self._flights for s in flight.sequences)
        for sequence in [s for s in flying if not s.ended]:
            request = sequence.request
            request.fruitless += 1
            if request.fruitless >= limit:
                why = f"The engine failed {limit} times in a row while it computed this answer."
                events.append(self._leave(sequence, "error", why))
        return events

    def restart(self, epoch: int, blocks: int) -> list[Event]:
        """The ranks are new, and hold nothing: every open request waits again, in its old place,
        to be computed from prompt and answer so far. Steps count from 0 again.

        The pool has `blocks` from now on; the requests that do not fit into it end with an error.
        """
        self.epoch, self._next_step = epoch, 0
        self._flights.clear()
        self._residents = Residents(blocks)
        self._limits = self._measure(blocks)
        for held in list(self._open.values()):
            if isinstance(held, Sequence):
                held.ended = True
                self._wait(reenter(held.request, held.turn, held.names))
        return [
            self._discard(held, "error", f"Memory is left for {self.capacity} tokens only.")
            for held in list(self._open.values())
            if isinstance(held, Waiting) and not self._limits.holds(held.request)
        ]

    def schedule(self, now: float) -> Step | None:
        """The next step, or None when nothing can be computed before a result arrives."""
        if len(self._flights) >= self.depth:
            return None
        draft = Draft(self.config.token_budget, self.config.max_batch_size)
        preempted = self.counters.preemptions
        self._pick_decodes(draft)
        self._pick_prompts(draft, now if self.counters.preemptions == preempted else None)
        if draft.empty:
            return None
        draft.top_up()
        gone = self._residents.take_released()
        step, flight = draft.launch(self.epoch, self._next_step, gone, now)
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
        rows = flight.landed(result)
        flight.keep_scores(result)
        if self.cap.moves and not flight.prompts:
            self.cap.observe(len(flight.decodes), now - flight.sent_at)
        return self._land(rows, result, now)

    def audit(self) -> None:
        """Check the block books against the running sequences; raises IntegrityError."""
        self._residents.audit()

    def _pick_decodes(self, draft: Draft) -> None:
        """One token for each sequence that has one pending; those who waited longest for it first,
        inside a level, where not all can go.

        With several steps in flight each takes its share, or the pipeline would run empty.
        """
        residents, preemptions = self._residents, self.counters.preemptions
        ready = [sequence for sequence in residents.ready if not sequence.ended]
        most = min(self.cap.rows, -(-len(residents) // self.depth))
        if len(ready) > most:
            ready.sort(key=lambda sequence: sequence.level)
        residents.ready = ready[most:]
        picked = ready[:most]
        for sequence in [s for s in picked if s.computed >= s.room]:
            self._grow(sequence)
        if self.counters.preemptions > preemptions:
            picked = [sequence for sequence in picked if not sequence.ended]
        draft.decode(picked)

    def _grow(self, sequence: Sequence) -> None:
        """Give a sequence the block its next token needs; the last in rank lose theirs until there
        is one, or until that is the sequence itself."""
        residents = self._residents
        while not sequence.ended and sequence.missing_blocks > residents.pool.available:
            self._preempt(residents.last())
        if not sequence.ended:
            sequence.extend(residents.pool.allocate(sequence.missing_blocks))

    def _preempt(self, sequence: Sequence) -> None:
        self.counters.preemptions += 1
        sequence.request.preemptions += 1
        self._residents.drop(sequence)
        self._wait(reenter(sequence.request, sequence.turn, sequence.names))

    def _pick_prompts(self, draft: Draft, now: float | None) -> None:
        """Level by level; who waits at a better one starts first. Nobody starts without `now`."""
        residents = self._residents
        prompts = [s for s in residents.prompts if not s.ended]
        residents.prompts = []
        for level in sorted({sequence.level for sequence in prompts}):
            self._admit(draft, now, level)
            self._share(draft, [s for s in prompts if s.level == level], now)
        self._admit(draft, now)

    def _share(self, draft: Draft, prompts: list[Sequence], now: float | None) -> None:
        """Equal shares of the budget, the least work first, and one share for who waits.

        A short prompt then answers after a few steps, however long the others are.
        """
        waiting = self._queue.head()
        shares = len(prompts)
        if now is not None and waiting is not None:
            shares += self._residents.level(waiting, now) <= prompts[0].level
        for sequence in sorted(prompts, key=lambda s: s.pending):
            if draft.full:
                self._residents.prompts.append(sequence)
                continue
            draft.pick(sequence, min(sequence.pending, max(1, draft.budget // shares)))
            shares -= 1

    def _admit(self, draft: Draft, now: float | None, below: int | None = None) -> None:
        """Start waiting requests in order, those of a level better than `below`; past one that
        lacks memory only a bounded number go."""
        seats = self.cap.rows * self.depth
        lacking: list[Waiting] = []
        while now is not None and not draft.full and len(self._residents) < seats:
            waiting = self._queue.head()
            if waiting is None or len(lacking) > LOOK_AHEAD:
                break
            if lacking and lacking[0].passed >= MAX_PASSED:
                break
            level = self._residents.level(waiting, now)
            if below is not None and level >= below:
                break
            self._queue.pop()
            sequence = self._residents.start(waiting, level)
            if sequence is None:
                lacking.append(waiting)
                continue
            if lacking:
                lacking[0].passed += 1
            self._begin(sequence, now)
            draft.pick(sequence, min(sequence.pending, draft.budget))
        for waiting in lacking:
            self._queue.push(waiting)

    def _begin(self, sequence: Sequence, now: float) -> None:
        request = sequence.request
        self._open[request.id] = sequence
        if request.cached_tokens is None:
            request.cached_tokens = sequence.computed
            request.admitted_at = now
            self.counters.prompt_tokens += len(request.prompt)
            self.counters.cached_tokens += sequence.computed

    def _land(self, rows: Iterable[Landed], result: Result, now: float) -> list[Event]:
        """What the rows do to their requests."""
        ready, failed = self._residents.ready, frozenset(result.failed)
        events: list[Event] = []
        drawn = 0
        for sequence, token, report in rows:
            if sequence.ended:
                continue
            if failed and sequence.id in failed:
                events.append(self._fail(sequence, result))
                continue
            if sequence.computed >= sequence.full_at:
                sequence.publish(self.pool)
            if token is None:
                events += self._read_on(sequence)
                continue
            drawn += 1
            sequence.last = token
            sequence.length += 1
            request = sequence.request
            finish = request.accept(token, now)
            if finish is None:
                ready.append(sequence)
                events.append(Event(request, token, None, report))
            else:
                events.append(self._leave(sequence, finish, "", token, report))
        self.counters.generated_tokens += drawn
        return events

    def _read_on(self, sequence: Sequence) -> list[Event]:
        """After a part of a prompt, and after all of one that wants no answer."""
        if not sequence.pending:
            return [self._leave(sequence, "length")]
        self._residents.prompts.append(sequence)
        return []

    def _fail(self, sequence: Sequence, result: Result) -> Event:
        self.pool.retract(sequence.table)
        sequence.request.refused = sequence.id in result.reasons
        why = "The model produced numbers that are not finite."
        return self._leave(sequence, "error", result.reasons.get(sequence.id, why))

    def _leave(
        self,
        sequence: Sequence,
        finish: FinishReason,
        error: str = "",
        token: int | None = None,
        report: TokenLogprobs | None = None,
    ) -> Event:
        self._residents.drop(sequence)
        return self._finish(sequence.request, finish, error, token, report)

    def _discard(self, waiting: Waiting, finish: FinishReason, error: str) -> Event:
        self._queue.discard(waiting)
        return self._finish(waiting.request, finish, error)

    def _measure(self, blocks: int) -> Limits:
        return Limits(min(self._longest, blocks * BLOCK_SIZE), self.config.max_waiting)

    def _wait(self, waiting: Waiting) -> None:
        self._open[waiting.request.id] = waiting
        self._queue.push(waiting)

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
