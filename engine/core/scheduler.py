"""Decides what every step computes. Pure: no clock, no sockets, no tensors.

Caller: the head's engine loop, one thread. `schedule()` gives the next step to send to the ranks,
`apply()` takes its result. Decode rows come first, then prefill in chunks, under one token budget.
When blocks run out, the newest sequence loses its own and its request is computed again later from
prompt and answer so far.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from engine.config import BLOCK_SIZE, EngineConfig
from engine.core.blocks import BlockPool
from engine.core.counters import Counters
from engine.core.draft import Draft, Flown
from engine.core.prefix import chain
from engine.core.request import Event, FinishReason, Request
from engine.core.sequence import Sequence
from engine.errors import ProtocolError, RequestError
from engine.errors import gettext_noop as _
from engine.protocol.steps import Result, Step

MAX_PASSED = 16
"""Requests that may overtake one waiting for memory before it blocks the queue."""
LOOK_AHEAD = 8
"""Waiting requests considered for overtaking in one step."""


@dataclass(slots=True, eq=False)
class _Waiting:
    request: Request
    tokens: list[int]
    names: list[bytes]
    """Hashes of the full blocks before the last token, which is always computed again."""
    passed: int = 0


class Scheduler:
    def __init__(self, config: EngineConfig, context_length: int, *, epoch: int = 0) -> None:
        self.config = config
        self.epoch = epoch
        self.depth = config.plan.pp
        """Steps in flight at once; their sequences are disjoint."""
        self.pool = BlockPool(config.num_kv_blocks)
        self.capacity = min(
            config.max_model_len or context_length, config.num_kv_blocks * BLOCK_SIZE
        )
        """Longest sequence in tokens, prompt and answer together."""
        self.counters = Counters()
        self._waiting: deque[_Waiting] = deque()
        self._running: dict[int, Sequence] = {}
        self._open: dict[str, _Waiting | Sequence] = {}
        self._flights: deque[tuple[int, list[Flown]]] = deque()
        self._released: list[int] = []
        self._next_step = 0
        self._next_sequence = 0

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        return len(self._flights)

    def add(self, request: Request) -> None:
        """Queue a request; raises RequestError when it could never run or the queue is full."""
        self.add_all([request])

    def add_all(self, requests: Collection[Request]) -> None:
        """Queue all of these; raises RequestError and queues none when one is refused."""
        for request in requests:
            self._check(request)
        self._check_room(len(requests))
        for request in requests:
            self._enqueue(request, front=False)

    def end(self, request_id: str, finish: FinishReason, error: str = "") -> Event | None:
        """End a request now, whatever it is doing; its blocks are free on return.

        A step in flight may still write to them: harmless, because ranks run steps in order and
        the next owner's step comes later. Returns None when the request is not open.
        """
        held = self._open.get(request_id)
        if held is None:
            return None
        if isinstance(held, Sequence):
            self._drop(held)
            return self._finish(held.request, finish, error)
        self._waiting.remove(held)
        return self._finish(held.request, finish, error)

    def end_all(self, finish: FinishReason, error: str) -> list[Event]:
        events = [self.end(request_id, finish, error) for request_id in list(self._open)]
        return [event for event in events if event is not None]

    def schedule(self, now: float) -> Step | None:
        """The next step, or None when nothing can be computed before a result arrives."""
        if len(self._flights) >= self.depth:
            return None
        draft = Draft(budget=self.config.token_budget, rows_left=self.config.max_batch_size)
        preempted = self.counters.preemptions
        self._pick_decodes(draft)
        self._pick_prefills(draft)
        if self.counters.preemptions == preempted:
            self._admit(draft, now)
        draft.top_up()
        return self._launch(draft) if draft.picked else None

    def apply(self, result: Result, now: float) -> list[Event]:
        """Take the oldest step's result; raises ProtocolError when it is not that step's."""
        if not self._flights or self._flights[0][0] != result.n:
            raise ProtocolError(
                _("A result for step %(step)s arrived out of order."), step=result.n
            )
        _n, flown = self._flights.popleft()
        if len(result.tokens) != sum(row.sample for row in flown):
            raise ProtocolError(
                _("The result of step %(step)s has the wrong number of tokens."), step=result.n
            )
        tokens = iter(result.tokens)
        failed = frozenset(result.failed)
        events: list[Event] = []
        for row in flown:
            token = next(tokens) if row.sample else None
            row.sequence.in_flight = False
            if not row.sequence.ended:
                events += self._land(row, token, row.sequence.id in failed, now)
        return events

    def audit(self) -> None:
        """Check the block books against the running sequences; raises IntegrityError."""
        self.pool.audit(sequence.table for sequence in self._running.values())

    def _check(self, request: Request) -> None:
        if request.id in self._open:
            raise RequestError(f"A request with the id {request.id!r} is already running.")
        if not request.prompt:
            raise RequestError("The prompt is empty.", param="prompt")
        if len(request.prompt) + request.max_tokens > self.capacity:
            raise RequestError(
                f"The prompt has {len(request.prompt)} tokens and {request.max_tokens} more were "
                f"asked for; together the limit is {self.capacity}.",
                param="max_tokens",
                code="context_length_exceeded",
            )

    def _check_room(self, count: int) -> None:
        limit, waiting = self.config.max_waiting, len(self._waiting)
        if count > limit:
            raise RequestError(f"{count} answers at once were asked for; the limit is {limit}.")
        if waiting + count > limit:
            raise RequestError(
                f"{waiting} requests are already waiting; try again later.",
                code="queue_full",
                status=503,
            )

    def _pick_decodes(self, draft: Draft) -> None:
        """One token for each sequence that has one pending, oldest first.

        With several steps in flight each takes its share, or the pipeline would run empty.
        """
        share = -(-len(self._running) // self.depth)
        for sequence in list(self._running.values()):
            if draft.full or len(draft.picked) >= share:
                return
            if sequence.in_flight or sequence.ended or sequence.pending != 1:
                continue
            if self._grow(sequence):
                draft.pick(sequence, 1)

    def _pick_prefills(self, draft: Draft) -> None:
        """Equal shares of the budget, the least work first, and one share for who waits.

        A short prompt then answers after a few steps, however long the others are.
        """
        prefills = [s for s in self._running.values() if not s.in_flight and s.pending > 1]
        shares = len(prefills) + bool(self._waiting)
        for sequence in sorted(prefills, key=lambda s: s.pending):
            if draft.full:
                return
            draft.pick(sequence, min(sequence.pending, max(1, draft.budget // shares)))
            shares -= 1

    def _grow(self, sequence: Sequence) -> bool:
        """Give a sequence the block its next token needs, taking one from the newest if must be.

        False when the sequence has to wait, or lost its own blocks.
        """
        while sequence.missing_blocks > self.pool.available:
            victim = next((s for s in reversed(self._running.values()) if not s.in_flight), None)
            if victim is None:
                return False
            self._preempt(victim)
            if victim is sequence:
                return False
        sequence.extend(self.pool.allocate(sequence.missing_blocks))
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self.counters.preemptions += 1
        sequence.request.preemptions += 1
        self._drop(sequence)
        self._enqueue(sequence.request, front=True)

    def _admit(self, draft: Draft, now: float) -> None:
        """Start waiting requests in order; past one that lacks memory only a bounded number go."""
        limit = self.config.max_batch_size * self.depth
        blocked: _Waiting | None = None
        for waiting in list(self._waiting)[: LOOK_AHEAD + draft.rows_left]:
            if draft.full or len(self._running) >= limit:
                return
            if blocked is not None and blocked.passed >= MAX_PASSED:
                return
            sequence = self._try_start(waiting, now)
            if sequence is None:
                blocked = blocked or waiting
                continue
            if blocked is not None:
                blocked.passed += 1
            draft.pick(sequence, min(sequence.pending, draft.budget))

    def _try_start(self, waiting: _Waiting, now: float) -> Sequence | None:
        """Reserve every block the prompt needs, sharing what is cached; None when they lack.

        One block a running sequence is left over, so that starting one does not evict another.
        """
        shared = self.pool.lookup(waiting.names)
        needed = -(-len(waiting.tokens) // BLOCK_SIZE) - len(shared)
        if needed + self.pool.cost(shared) + len(self._running) > self.pool.available:
            return None
        self.pool.share(shared)
        sequence = Sequence(
            id=self._next_sequence,
            request=waiting.request,
            tokens=waiting.tokens,
            table=[],
            computed=len(shared) * BLOCK_SIZE,
            names=waiting.names[: len(shared)],
        )
        sequence.extend(shared + self.pool.allocate(needed))
        self._next_sequence += 1
        self._waiting.remove(waiting)
        self._running[sequence.id] = sequence
        self._open[waiting.request.id] = sequence
        self._count_admission(waiting.request, sequence.computed, now)
        return sequence

    def _count_admission(self, request: Request, cached: int, now: float) -> None:
        if request.cached_tokens is None:
            request.cached_tokens = cached
            request.admitted_at = now
            self.counters.prompt_tokens += len(request.prompt)
            self.counters.cached_tokens += cached

    def _launch(self, draft: Draft) -> Step:
        step, flown = draft.launch(self.epoch, self._next_step, self._released)
        self._released = []
        self._next_step += 1
        self._flights.append((step.n, flown))
        self.counters.steps += 1
        return step

    def _land(self, row: Flown, token: int | None, failed: bool, now: float) -> list[Event]:
        sequence, request = row.sequence, row.sequence.request
        if failed:
            self.pool.retract(sequence.table)
            self._drop(sequence)
            return [
                self._finish(request, "error", "The model produced numbers that are not finite.")
            ]
        sequence.publish(self.pool, row.until)
        if token is None:
            return []
        sequence.tokens.append(token)
        self.counters.generated_tokens += 1
        finish = request.accept(token, now)
        if finish is None:
            return [Event(request, token)]
        self._drop(sequence)
        return [self._finish(request, finish, token=token)]

    def _enqueue(self, request: Request, *, front: bool) -> None:
        tokens = request.history
        names = chain(request.namespace, tokens, (len(tokens) - 1) // BLOCK_SIZE)
        waiting = _Waiting(request, tokens, names)
        self._open[request.id] = waiting
        if front:
            self._waiting.appendleft(waiting)
        else:
            self._waiting.append(waiting)

    def _drop(self, sequence: Sequence) -> None:
        """Take a sequence's blocks back and have the ranks forget it."""
        sequence.ended = True
        del self._running[sequence.id]
        self.pool.release(sequence.table)
        if sequence.introduced:
            self._released.append(sequence.id)

    def _finish(
        self, request: Request, finish: FinishReason, error: str = "", token: int | None = None
    ) -> Event:
        del self._open[request.id]
        request.finish = finish
        request.error = error
        self.counters.count_end(finish)
        return Event(request, token, finish)
