"""What splitting a model over processes of one machine gains or costs, in tokens per second.

Pairs are compared with the real scheduler and real rank processes, taking turns so that a busy
moment of the machine falls on both: two ranks of one thread with one rank of two threads, and a
pipeline whose stages work on a batch each with one that has a single batch on its way.

The pipelines are compared twice. With as many answers open as two batches hold, all batches are
full. With as many as one holds, two stages can only have half a batch each, and half a batch takes
little less time than a whole one where reading the weights is most of the work.
"""

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import msgspec

from engine.bench.fleet import Fleet
from engine.bundled import bundled_model
from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig, ParallelPlan
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.errors import RankError
from engine.protocol.steps import Sampling

BATCH = 8
ANSWER = 64
PROMPT = 16


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens per second, in the order of measuring, and medians."""

    what: str
    than: str
    answers: int
    """Open at once; a step computes at most `batch` of them."""
    transport: str
    """Of the first."""
    rates: list[float]
    others: list[float]
    rate: float
    other: float
    ratio: float
    """Median of the rounds' own ratios."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    batch: int
    answer_tokens: int
    prompt_tokens: int
    tensor_parallel: Comparison
    pipeline: Comparison
    pipeline_of_half_batches: Comparison


def measure(model: Path | None, rounds: int) -> Report:
    """Raises EngineError when an engine cannot start."""
    path = model or bundled_model()
    alone = Side(path, "tp=1,pp=1", "1 process x 2 threads", threads=2)
    split = Side(path, "tp=2,pp=1", "2 processes x 1 thread")
    single = Side(path, "tp=1,pp=2", "2 stages, one batch on its way", batches=1)
    turns = Side(path, "tp=1,pp=2", "2 stages, a batch each")
    (tensor_parallel,) = _compare(split, alone, rounds, [BATCH])
    full, half = _compare(turns, single, rounds, [2 * BATCH, BATCH])
    return Report(
        model=path.stem,
        batch=BATCH,
        answer_tokens=ANSWER,
        prompt_tokens=PROMPT,
        tensor_parallel=tensor_parallel,
        pipeline=full,
        pipeline_of_half_batches=half,
    )


class Side:
    """One way to run the model."""

    def __init__(
        self, model: Path, plan: str, name: str, *, threads: int = 1, batches: int | None = None
    ) -> None:
        self.name = name
        checkpoint = open_checkpoint(model)
        config = EngineConfig(
            plan=ParallelPlan.parse(plan),
            max_batch_size=BATCH,
            kv_cache_tokens=4096,
            threads_per_rank=threads,
        )
        self.fleet = Fleet(model, config)
        self._tokens = range(checkpoint.config.vocab_size // 2)
        self._random = random.Random(name)
        if batches == 1:
            # A scheduler that knows of no stages has all rows in one step, and waits for it.
            config = msgspec.structs.replace(config, plan=ParallelPlan())
        self.scheduler = Scheduler(config, checkpoint.config.context_length)
        if batches is not None:
            self.scheduler.depth = batches
        self._made = 0

    def run(self, answers: int) -> float:
        """Tokens per second over as many answers, from their prompts to the last token."""
        requests = [self._request() for _ in range(answers)]
        began = time.perf_counter()
        self.scheduler.add_all(requests)
        while any(request.finish is None for request in requests):
            while (step := self.scheduler.schedule(time.monotonic())) is not None:
                self.fleet.send(step)
            self.scheduler.apply(self.fleet.result(), time.monotonic())
        seconds = time.perf_counter() - began
        self._settle()
        if any(len(request.emitted) != ANSWER for request in requests):
            raise RankError("An answer has the wrong length.")
        return answers * ANSWER / seconds

    def _settle(self) -> None:
        """What was sent ahead of the last token still runs."""
        while self.scheduler.in_flight:
            self.scheduler.apply(self.fleet.result(), time.monotonic())

    def _request(self) -> Request:
        self._made += 1
        prompt = self._random.choices(self._tokens, k=PROMPT)
        greedy = Sampling(temperature=0.0)
        return Request(id=str(self._made), prompt=prompt, max_tokens=ANSWER, sampling=greedy)


def _compare(side: Side, other: Side, rounds: int, loads: list[int]) -> list[Comparison]:
    """One for each number of answers."""
    with ExitStack() as stack:
        for each in (side, other):
            stack.enter_context(each.fleet)
            each.run(BATCH)
        return [
            _comparison(side, other, answers, _pairs(side, other, answers, rounds))
            for answers in loads
        ]


def _pairs(side: Side, other: Side, answers: int, rounds: int) -> list[tuple[float, float]]:
    return [(side.run(answers), other.run(answers)) for _ in range(rounds)]


def _comparison(
    side: Side, other: Side, answers: int, pairs: list[tuple[float, float]]
) -> Comparison:
    return Comparison(
        what=side.name,
        than=other.name,
        answers=answers,
        transport=side.fleet.transport,
        rates=[round(rate, 2) for rate, _other in pairs],
        others=[round(rate, 2) for _side, rate in pairs],
        rate=_middle([rate for rate, _other in pairs]),
        other=_middle([rate for _side, rate in pairs]),
        ratio=_middle([rate / than for rate, than in pairs]),
    )


def _middle(values: Sequence[float]) -> float:
    return round(median(values), 3)
