"""What the scheduler costs the head a step. Loads no torch.

256 answers run; whenever one ends, a waiting request takes its place and a new one comes to wait,
so that steps have the usual mix: 256 rows, about one of them a prompt. Answers differ in length.
As in the head, a step is decided while the one before it is on its way.
"""

import random
import sys
import time
from collections import deque
from statistics import fmean, median, quantiles

import msgspec

from engine.config import BLOCK_SIZE, EngineConfig
from engine.core.prefix import namespace
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.head.collector import collect_rarely
from engine.protocol.steps import Result, Step, Timings, encode, step_digest

RUNNING = 256
WAITING = (100, 1_000, 10_000)
PROMPT = 128
LONGEST_ANSWER = 512
WARM_UP_STEPS = LONGEST_ANSWER
"""Until the first answers, which all began at once, are spread over their lengths."""

ROUND = 20

_TOKENS = range(49_152)
_NO_TIME = Timings(0.0, 0.0, 0.0)


class Spread(msgspec.Struct, frozen=True):
    """Of many measurements, in milliseconds of processor time: on a core that others use too, the
    clock on the wall would measure them."""

    median: float
    p95: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Spread":
        return cls(
            median=round(1e3 * median(seconds), 4), p95=round(1e3 * quantiles(seconds, n=20)[-1], 4)
        )


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds a step, but for `submit`: that is a request."""

    running: int
    waiting: int
    steps: int
    rows: float
    """Mean of a step."""
    step: Spread
    """Deciding it and taking its result: schedule + apply."""
    schedule: Spread
    """With the digest."""
    apply: Spread
    digest: Spread
    """Its share of schedule, measured again."""
    encode: Spread
    """Writing the message for the ranks; no part of `step`."""
    submit: Spread


class Report(msgspec.Struct, frozen=True, kw_only=True):
    block_size: int
    prompt_tokens: int
    python: str
    costs: list[Cost]


def measure(steps: int) -> Report:
    """Rounds of steps take turns, so that a busy moment of the machine falls on all alike."""
    collect_rarely()
    loads = [_Load(waiting) for waiting in WAITING]
    for load in loads:
        load.settle()
    for done in range(0, steps, ROUND):
        for load in loads:
            load.run(min(ROUND, steps - done))
    costs = [load.cost() for load in loads]
    if "torch" in sys.modules:
        raise AssertionError("The scheduler has loaded torch.")
    return Report(
        block_size=BLOCK_SIZE,
        prompt_tokens=PROMPT,
        python=sys.version.split()[0],
        costs=costs,
    )


class _Load:
    """A scheduler with as many requests running and waiting as wanted, all the time."""

    def __init__(self, waiting: int) -> None:
        blocks = RUNNING * (PROMPT + LONGEST_ANSWER) // BLOCK_SIZE + RUNNING
        config = EngineConfig(
            max_batch_size=RUNNING,
            token_budget=2 * RUNNING,
            kv_cache_tokens=blocks * BLOCK_SIZE,
            max_waiting=RUNNING + waiting,
        )
        self.scheduler = Scheduler(config, PROMPT + LONGEST_ANSWER)
        self.waiting = waiting
        self._random = random.Random(waiting)
        self._root = namespace("bench", "1")
        self._made = 0
        self._results: deque[Result] = deque()
        self._rows: list[int] = []
        self._now = 0.0
        self._seconds: dict[str, list[float]] = {
            name: [] for name in ("schedule", "apply", "digest", "encode", "submit")
        }

    def settle(self) -> None:
        """To the usual mix of steps; what was measured on the way is forgotten."""
        for _ in range(RUNNING + self.waiting):
            self._submit()
        while self.scheduler.running < RUNNING:
            self._step()
        self.run(WARM_UP_STEPS)
        self._rows.clear()
        for values in self._seconds.values():
            values.clear()

    def run(self, steps: int) -> None:
        self._rows += [self._step() for _ in range(steps)]

    def cost(self) -> Cost:
        seconds = self._seconds
        both = [a + b for a, b in zip(seconds["schedule"], seconds["apply"], strict=True)]
        return Cost(
            running=self.scheduler.running,
            waiting=self.scheduler.waiting,
            steps=len(self._rows),
            rows=round(fmean(self._rows), 1),
            step=Spread.of(both),
            **{name: Spread.of(values) for name, values in seconds.items()},
        )

    def _submit(self) -> None:
        self._made += 1
        request = Request(
            id=str(self._made),
            prompt=self._random.choices(_TOKENS, k=PROMPT),
            max_tokens=self._random.randint(LONGEST_ANSWER // 4, LONGEST_ANSWER),
            namespace=self._root,
            arrived_at=self._now,
        )
        began = time.thread_time()
        self.scheduler.add(request)
        self._seconds["submit"].append(time.thread_time() - began)

    def _step(self) -> int:
        self._now += 0.02
        begun = time.thread_time()
        step = self.scheduler.schedule(self._now)
        scheduled = time.thread_time()
        assert step is not None
        encode(step)
        encoded = time.thread_time()
        tokens = [7] * sum(row.sample for row in step.rows)
        self._results.append(Result(step.n, tokens, [], _NO_TIME))
        arrived = time.thread_time()
        if len(self._results) == self.scheduler.depth:
            self.scheduler.apply(self._results.popleft(), self._now)
        applied = time.thread_time()
        self._seconds["schedule"].append(scheduled - begun)
        self._seconds["encode"].append(encoded - scheduled)
        self._seconds["apply"].append(applied - arrived)
        self._digest(step)
        while self.scheduler.waiting + self.scheduler.running < self.waiting + RUNNING:
            self._submit()
        return len(step.rows)

    def _digest(self, step: Step) -> None:
        began = time.thread_time()
        step_digest(step.epoch, step.n, [(row.seq, row.start, 20) for row in step.rows])
        self._seconds["digest"].append(time.thread_time() - began)
