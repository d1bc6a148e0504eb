"""The head's loop around real ranks: a step is on its way while the one before it runs."""

from collections.abc import Sequence

from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.protocol.steps import Result, StepDone
from tests.engine.rank_fleet import STEP_SECONDS, RankFleet
from tests.engine.step_maker import GREEDY


def scheduler_for(fleet: RankFleet, context_length: int = 2048) -> Scheduler:
    return Scheduler(fleet.config, context_length, epoch=fleet.epoch)


def serve(scheduler: Scheduler, fleet: RankFleet, requests: Sequence[Request]) -> int:
    """Answer all of these; the most steps that were on their way at once."""
    scheduler.add_all(requests)
    most = 0
    while scheduler.running or scheduler.waiting or scheduler.in_flight:
        while (step := scheduler.schedule(0.0)) is not None:
            fleet.broadcast(step)
        most = max(most, scheduler.in_flight)
        scheduler.apply(receive(fleet), 0.0)
    scheduler.audit()
    assert scheduler.pool.used == 0
    return most


def receive(fleet: RankFleet) -> Result:
    """The oldest step's result, once every rank has ended it."""
    output = fleet.config.plan.output_rank
    for rank, link in enumerate(fleet.links):
        if rank != output:
            link.receive(StepDone, STEP_SECONDS)
    return fleet.links[output].receive(Result, STEP_SECONDS)


def ask(name: str, prompt: list[int], max_tokens: int) -> Request:
    """Greedy, to the last token."""
    return Request(id=name, prompt=prompt, max_tokens=max_tokens, sampling=GREEDY)
