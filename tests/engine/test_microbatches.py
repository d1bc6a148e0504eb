"""In a pipeline every stage has its own rows to compute, as many as the others."""

from engine.config import EngineConfig, ParallelPlan
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.protocol.steps import PENDING, Result, Step
from tests.engine.mirror import RankMirror, answer


class Pipeline:
    """A scheduler whose results come one by one, as a pipeline's do."""

    def __init__(self, stages: int, token_budget: int = 256) -> None:
        config = EngineConfig(plan=ParallelPlan(pp=stages), token_budget=token_budget)
        self.scheduler = Scheduler(config, 1024)
        self.mirror = RankMirror()
        self.flights: list[tuple[Step, Result]] = []

    def ask(self, index: int, prompt: int = 3, max_tokens: int = 200) -> Request:
        tokens = [(7 * index + i) % 97 for i in range(prompt)]
        request = Request(id=f"r{index}", prompt=tokens, max_tokens=max_tokens)
        self.scheduler.add(request)
        return request

    def advance(self) -> None:
        """One result; then a step for every stage is on its way again, if there are rows."""
        if self.flights:
            self.scheduler.apply(self.flights.pop(0)[1], 0.0)
        while (step := self.scheduler.schedule(0.0)) is not None:
            self.flights.append((step, self.mirror.run(step)))

    @property
    def sizes(self) -> list[int]:
        return [sum(len(row.tokens) == 1 for row in step.rows) for step, _ in self.flights]


def test_requests_that_come_together_are_divided_evenly() -> None:
    for stages in (2, 3):
        pipeline = Pipeline(stages)
        for index in range(4 * stages):
            pipeline.ask(index)
        for _ in range(2 * stages + 2):
            pipeline.advance()
        assert pipeline.sizes == [4] * stages
        assert all(PENDING not in row.tokens for step, _ in pipeline.flights for row in step.rows)


def test_a_prompt_is_read_in_every_step_and_leaves_the_division_even() -> None:
    pipeline = Pipeline(2, token_budget=64)
    for index in range(8):
        pipeline.ask(index)
    for _ in range(8):
        pipeline.advance()
    long = pipeline.ask(9, prompt=300, max_tokens=20)
    pipeline.advance()
    while not long.emitted:
        pipeline.advance()
        assert sorted(pipeline.sizes) in ([4, 4], [4, 5])
        read = [max(len(row.tokens) for row in step.rows) for step, _ in pipeline.flights]
        assert max(read) <= 32, "half of the budget for each of the two"
    assert long.emitted == answer(long.prompt, len(long.emitted))


def test_ends_on_one_side_are_evened_out() -> None:
    pipeline = Pipeline(2)
    requests = [pipeline.ask(index) for index in range(8)]
    for _ in range(6):
        pipeline.advance()
    first = {row.seq for row in pipeline.flights[0][0].rows}
    for request in [r for index, r in enumerate(requests) if index in first][:3]:
        pipeline.scheduler.end(request.id, "abort")
    for _ in range(6):
        pipeline.advance()
    assert sorted(pipeline.sizes) == [2, 3]
