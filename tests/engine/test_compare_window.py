"""A batch's speed counts only the steps in which all of its answers are being written."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from engine.bench.compare.players.speech import Refused
from engine.bench.compare.players.window import full_batch, rate_of


def steps(first: float, count: int, each: float, late: float = 0.0) -> list[float]:
    return [first + late + each * index for index in range(count)]


def test_rows_of_one_step_count_alike_though_they_arrive_a_moment_apart() -> None:
    rows = [steps(0.0, 65, 0.1, 1e-4 * row) for row in range(32)]
    timed = rate_of(rows)
    assert timed.tokens == 64 * 32
    assert timed.tokens / timed.seconds == pytest.approx(320.0, rel=1e-3)


def test_steps_before_the_last_row_has_begun_do_not_count() -> None:
    """A prompt that is still being read makes the others slow."""
    slow = [0.0, 5.0, 10.0, *steps(10.1, 40, 0.1)]
    timed = rate_of([slow, steps(10.0, 41, 0.1)])
    assert timed.tokens / timed.seconds == pytest.approx(20.0, rel=1e-3)


def test_steps_after_the_first_row_has_ended_do_not_count() -> None:
    quick_end = [*steps(0.0, 21, 0.1), *steps(2.05, 20, 0.05)]
    timed = rate_of([quick_end, steps(0.0, 21, 0.1)])
    assert timed.tokens / timed.seconds == pytest.approx(20.0, rel=1e-3)


def test_a_batch_that_was_never_complete_is_refused() -> None:
    with pytest.raises(Refused):
        rate_of([steps(0.0, 5, 0.1), []])
    with pytest.raises(Refused):
        rate_of([steps(0.0, 5, 0.1), steps(9.0, 5, 0.1)])


async def test_answers_that_take_too_long_are_given_up() -> None:
    given_up: list[int] = []

    async def stream(prompt: list[int], tokens: int) -> AsyncIterator[list[int]]:
        try:
            for token in range(tokens):
                yield [token]
                await asyncio.sleep(0.001 if token < 5 else 60.0)
        finally:
            given_up.append(prompt[0])

    timed = await full_batch(stream, [[1], [2]], 100, 0.3)
    assert timed.tokens >= 8
    assert sorted(given_up) == [1, 2]
