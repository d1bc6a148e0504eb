"""How many answers advance together follows the time a step takes."""

import pytest

from engine.config import EngineConfig
from engine.core.cap import WINDOW, BatchCap
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from tests.engine.mirror import RankMirror, answer


def feed(cap: BatchCap, rows: int, seconds: float, windows: int = 1) -> None:
    for _ in range(windows * WINDOW):
        cap.observe(rows, seconds)


def test_without_a_target_it_stays_at_the_most() -> None:
    cap = BatchCap(8, None)
    feed(cap, 8, 100.0)
    assert cap.rows == 8


def test_late_steps_take_a_share_away_and_timely_ones_give_one_row_back() -> None:
    cap = BatchCap(32, 0.1)
    feed(cap, 32, 0.2)
    assert cap.rows == 24
    feed(cap, 24, 0.2)
    assert cap.rows == 18
    feed(cap, 18, 0.05)
    assert cap.rows == 19


def test_it_ends_between_one_and_the_most() -> None:
    cap = BatchCap(4, 0.1)
    feed(cap, 4, 9.0, windows=10)
    assert cap.rows == 1
    for _ in range(10):
        feed(cap, cap.rows, 0.01)
    assert cap.rows == 4


def test_one_hiccup_decides_nothing() -> None:
    cap = BatchCap(8, 0.1)
    cap.observe(8, 5.0)
    for _ in range(WINDOW - 1):
        cap.observe(8, 0.05)
    assert cap.rows == 8


def test_a_cap_that_nothing_reaches_does_not_grow() -> None:
    cap = BatchCap(8, 0.1)
    feed(cap, 8, 0.2)
    feed(cap, 2, 0.01, windows=5)
    assert cap.rows == 6


def test_it_settles_where_the_target_is_kept() -> None:
    cap = BatchCap(32, 0.1)
    seen = []
    for _ in range(60):
        feed(cap, cap.rows, 0.01 * cap.rows)
        seen.append(cap.rows)
    assert 7 <= min(seen[20:]) <= max(seen[20:]) <= 11


@pytest.mark.parametrize("seconds", [0.01, 1.0])
def test_a_scheduler_keeps_to_it_and_nobody_is_left_behind(seconds: float) -> None:
    config = EngineConfig(max_batch_size=8, target_itl=0.1)
    scheduler, mirror = Scheduler(config, 512), RankMirror()
    requests = [Request(id=f"r{i}", prompt=[i, 50], max_tokens=60) for i in range(8)]
    for request in requests:
        scheduler.add(request)
    now, lag = 0.0, 0
    while (step := scheduler.schedule(now)) is not None:
        decodes = sum(row.admit is None for row in step.rows)
        assert decodes <= scheduler.cap.rows
        now += seconds
        scheduler.apply(mirror.run(step), now)
        lengths = [len(request.emitted) for request in requests if not request.finish]
        lag = max(lag, max(lengths, default=0) - min(lengths, default=0))
    assert scheduler.cap.rows == (8 if seconds < 0.1 else 1)
    assert lag <= 1, "those who run take turns"
    assert all(request.emitted == answer(request.prompt, 60) for request in requests)


def test_held_down_it_is_lower_at_once_and_afterwards_what_it_was() -> None:
    cap = BatchCap(32, 0.1)
    cap.hold(4)
    assert cap.rows == 4
    feed(cap, 4, 0.01, windows=3)  # Timely steps of few rows say nothing about many.
    assert cap.rows == 4
    cap.hold(None)
    assert cap.rows == 32


def test_held_down_it_still_falls_when_steps_are_late() -> None:
    cap = BatchCap(32, 0.1)
    cap.hold(4)
    feed(cap, 4, 0.5)
    assert cap.rows == 3
    cap.hold(None)
    assert cap.rows == 3


def test_it_is_never_held_below_one_answer() -> None:
    cap = BatchCap(8, None)
    cap.hold(0)
    assert cap.rows == 1
