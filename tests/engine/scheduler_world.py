"""A scheduler, ranks without a model, and a check of every rule after each move."""

from collections import deque

from engine.config import BLOCK_SIZE, EngineConfig
from engine.core.request import Event, Request
from engine.core.scheduler import Scheduler
from engine.protocol.steps import PENDING, Result, Step
from tests.engine.mirror import RankMirror, next_token

CONTEXT = 96


def expected(request: Request) -> list[int]:
    """What an undisturbed run emits, up to the token that ends it."""
    history = list(request.prompt)
    while len(history) - len(request.prompt) < request.max_tokens:
        history.append(next_token(history, request.sampling))
        emitted = len(history) - len(request.prompt)
        if history[-1] in request.stop_tokens and emitted > request.min_tokens:
            break
    return history[len(request.prompt) :]


class SchedulerWorld:
    """Every request needs its own `sampling.seed`: it tells whose sequence a row is."""

    def __init__(self, config: EngineConfig) -> None:
        self.scheduler = Scheduler(config, CONTEXT)
        self.mirror = self._new_ranks()
        self.now = 0.0
        self.asked: list[Request] = []
        self.events: list[Event] = []
        self.flights: deque[tuple[Step, Result]] = deque()
        self.running: dict[int, Request] = {}
        """By sequence, as the steps tell."""
        self.doomed: set[int] = set()
        """Seeds of requests whose next row gives no finite numbers."""

    def add(self, request: Request) -> None:
        request.arrived_at = self.now
        self.scheduler.add(request)
        self.asked.append(request)

    def end(self, request: Request) -> None:
        event = self.scheduler.end(request.id, "abort")
        self.events += [event] if event else []
        self.scheduler.audit()

    def send(self) -> Step | None:
        queued = [r for r in self.asked if not r.finish and r not in self.running.values()]
        before = {request.id: request.preemptions for request in self.asked}
        step = self.scheduler.schedule(self.now)
        self.scheduler.audit()
        if step is None:
            return None
        started = self._follow(step)
        self._check_size(step)
        self._check_preemptions([r for r in self.asked if r.preemptions > before[r.id]])
        self._check_turns(started, queued)
        assert step.epoch == self.scheduler.epoch
        self.mirror.poisoned = {
            seq for seq, request in self.running.items() if request.sampling.seed in self.doomed
        }
        self.flights.append((step, self.mirror.run(step)))
        assert len(self.flights) <= self.scheduler.depth
        self._check_overlap(step)
        return step

    def receive(self) -> None:
        _step, result = self.flights.popleft()
        self.events += self.scheduler.apply(result, self.now)
        self.scheduler.audit()

    def fault(self, blocks: int, limit: int = 1000) -> None:
        """The epoch ends at once: nothing that is on its way arrives, and the ranks are new."""
        self.events += self.scheduler.interrupted(limit)
        self.scheduler.audit()
        self.flights.clear()
        self.running.clear()
        self.events += self.scheduler.restart(self.scheduler.epoch + 1, blocks)
        self.mirror = self._new_ranks()
        self.scheduler.audit()
        assert (self.scheduler.running, self.scheduler.in_flight) == (0, 0)
        assert self.scheduler.pool.size == self.scheduler.pool.available == blocks
        assert self.scheduler.waiting == sum(r.finish is None for r in self.asked)

    def _new_ranks(self) -> RankMirror:
        return RankMirror(token_budget=self.scheduler.config.token_budget)

    def drain(self) -> None:
        for _ in range(5000):
            while self.send():
                pass
            if not self.flights:
                return self.check_rest()
            self.receive()
        raise AssertionError("the scheduler does not come to an end")

    def check_rest(self) -> None:
        """Nothing is left, and everybody was answered as though alone."""
        assert (self.scheduler.running, self.scheduler.waiting) == (0, 0)
        assert self.scheduler.pool.used == 0
        assert self.scheduler.pool.available == self.scheduler.pool.size
        for request in self.asked:
            own = [event for event in self.events if event.request is request]
            endings = [event.finish for event in own if event.finish is not None]
            assert endings == [request.finish], "exactly one terminal event"
            assert own[-1].finish is not None, "nothing follows it"
            assert [e.token for e in own if e.token is not None] == request.emitted
            whole = expected(request)
            assert request.emitted == whole[: len(request.emitted)]
            if request.finish in ("stop", "length"):
                assert request.emitted == whole
            self._check_reports(request, own)

    def _follow(self, step: Step) -> list[Request]:
        by_seed = {request.sampling.seed: request for request in self.asked}
        for seq in step.released:
            del self.running[seq]
        started = []
        for row in step.rows:
            if row.admit is not None:
                request = self.running[row.seq] = by_seed[row.admit.sampling.seed]
                started.append(request)
                self._check_shared(request, row.start)
        return started

    def _check_size(self, step: Step) -> None:
        config, cap = self.scheduler.config, self.scheduler.cap.rows
        assert 1 <= cap <= config.max_batch_size
        assert len(step.rows) <= config.max_batch_size
        assert sum(len(row.tokens) for row in step.rows) <= config.token_budget
        decodes = [
            row
            for row in step.rows
            if row.admit is None and row.start >= len(self.running[row.seq].prompt)
        ]
        recomputed = sum(self._came_before(self.running[row.seq]) for row in decodes)
        assert len(decodes) - recomputed <= cap

    def _check_overlap(self, step: Step) -> None:
        """What follows on a row that is on its way goes on with the prompt, or computes what that
        row draws, should more be wanted; the latter not in a pipeline."""
        before = {row.seq: row for sent, _result in list(self.flights)[:-1] for row in sent.rows}
        for row in step.rows:
            earlier, request = before.get(row.seq), self.running[row.seq]
            assert (row.tokens == [PENDING]) == (earlier is not None and earlier.sample)
            if row.tokens == [PENDING]:
                assert self.scheduler.config.plan.pp == 1
                assert row.start < len(request.prompt) + request.max_tokens - 1

    def _check_preemptions(self, robbed: list[Request]) -> None:
        """With one priority a second apart, whoever lost its blocks was the last in rank."""
        kept = [(r.priority, self.asked.index(r)) for r in self.running.values() if not r.finish]
        lost = [(r.priority, self.asked.index(r)) for r in robbed]
        if lost and kept:
            assert min(lost) > max(kept)

    def _check_turns(self, started: list[Request], queued: list[Request]) -> None:
        """Inside a priority nobody starts before one who came earlier, unless that one lacks
        memory: then it is in need of more blocks than whoever passed it."""
        for first in started:
            for other in queued:
                if other in started or other.priority != first.priority:
                    continue
                if self.asked.index(other) < self.asked.index(first):
                    assert self._need(other) > self._need(first) or self._shares(first)

    def _need(self, request: Request) -> int:
        return -(-len(request.history) // BLOCK_SIZE)

    def _shares(self, request: Request) -> bool:
        return bool(request.cached_tokens) or self._came_before(request)

    def _came_before(self, request: Request) -> bool:
        """Whether this may not be the first time that it runs."""
        return request.preemptions > 0 or self.scheduler.epoch > 0

    def _check_shared(self, request: Request, tokens: int) -> None:
        """What is shared was computed before, for someone of the same namespace."""
        assert tokens < len(request.history)
        prefix = request.history[:tokens]
        assert not tokens or any(
            other.namespace == request.namespace and other.history[:tokens] == prefix
            for other in self.asked
            if other.cached_tokens is not None
            and (other is not request or self._came_before(other))
        )
        if request.score_prompt and not self._came_before(request):
            assert tokens == 0

    def _check_reports(self, request: Request, own: list[Event]) -> None:
        if request.sampling.logprobs is not None:
            for event in own:
                assert event.token is None or event.logprobs is not None
                assert event.logprobs is None or event.logprobs.token == event.token
        scored = [report.token for report in request.prompt_logprobs]
        if not request.score_prompt:
            assert scored == []
        elif request.emitted or request.finish == "length":
            assert scored == request.prompt[1:], "each token of the prompt is scored once"
        else:
            assert scored == request.prompt[1 : len(scored) + 1]
