"""How fast a whole batch goes, seen from its readers."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from statistics import median

from engine.bench.compare.players.asks import Timed
from engine.bench.compare.players.speech import Refused

Stream = Callable[[list[int], int], AsyncIterator[list[int]]]
"""Token ids as they come, greedily, for a prompt and a number of tokens."""


async def full_batch(
    stream: Stream, prompts: list[list[int]], tokens: int, most_seconds: float
) -> Timed:
    """Answers to all prompts at once, counted while all of them are being written."""
    arrivals: list[list[float]] = [[] for _ in prompts]

    async def read(index: int) -> None:
        async for new in stream(prompts[index], tokens):
            arrivals[index] += [time.perf_counter()] * len(new)

    tasks = [asyncio.create_task(read(index)) for index in range(len(prompts))]
    done, late = await asyncio.wait(tasks, timeout=most_seconds)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    for task in done:
        task.result()
    return rate_of(arrivals)


def rate_of(arrivals: list[list[float]]) -> Timed:
    """From the moment when each row has a token to the moment when the first one has its last.

    Rows of one step arrive a moment apart, so each row is measured by its own clock.
    """
    if not all(arrivals):
        raise Refused("Not every answer of the batch had begun when the time was over.")
    begin = max(row[0] for row in arrivals)
    end = min(row[-1] for row in arrivals)
    slack = 0.25 * median(_gap(row) for row in arrivals)
    rows = [[at for at in row if begin - slack <= at <= end + slack] for row in arrivals]
    if any(len(row) < 2 or row[-1] <= row[0] for row in rows):
        raise Refused("The batch was never complete for two tokens in a row.")
    rate = sum((len(row) - 1) / (row[-1] - row[0]) for row in rows)
    count = sum(len(row) - 1 for row in rows)
    return Timed(seconds=count / rate, tokens=count)


def _gap(row: list[float]) -> float:
    return (row[-1] - row[0]) / max(1, len(row) - 1)


async def first_token(stream: Stream, prompt: list[int]) -> float:
    """Seconds."""
    began = time.perf_counter()
    async for _new in stream(prompt, 1):
        return time.perf_counter() - began
    raise Refused("An answer ended without a token.")
