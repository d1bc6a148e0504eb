"""What a step costs does not depend on how many requests wait."""

import json
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

from engine.config import EngineConfig
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from tests.engine.mirror import RankMirror

ROOT = Path(__file__).resolve().parents[2]


def ask(index: int) -> Request:
    """Of one length and of one priority in three; each ends after another number of tokens."""
    return Request(
        id=f"r{index}",
        prompt=[index % 97, 1, 2],
        max_tokens=2 + index % 5,
        priority=index % 3,
        arrived_at=float(index),
    )


def calls(waiting: int) -> int:
    """Python calls that 40 steps make while answers end, start and are taken back."""
    config = EngineConfig(max_batch_size=4, max_waiting=20_000)
    scheduler, mirror = Scheduler(config, 64), RankMirror(next_token=lambda history, _: 5)
    scheduler.add_all([ask(index) for index in range(waiting)])
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    for number in range(40):
        sys.setprofile(counted)
        try:
            step = scheduler.schedule(1e6)
            scheduler.end(f"r{waiting - 1 - number}", "abort")
        finally:
            sys.setprofile(None)
        assert step is not None
        result = mirror.run(step)
        sys.setprofile(counted)
        try:
            scheduler.apply(result, 1e6)
        finally:
            sys.setprofile(None)
    return count


@pytest.mark.parametrize("waiting", [1_000, 10_000])
def test_a_long_queue_makes_no_step_do_more(waiting: int) -> None:
    assert calls(waiting) <= 1.02 * calls(200)


def test_the_benchmark_tells_each_part_and_needs_no_torch() -> None:
    command = [sys.executable, "-m", "engine.bench", "--scheduler", "--steps", "20"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    costs = json.loads(done.stdout)["costs"]
    assert [cost["waiting"] // 100 for cost in costs] == [1, 10, 100]
    for cost in costs:
        assert cost["running"] >= 250
        for part in ("step", "schedule", "apply", "digest", "encode", "submit"):
            assert 0 <= cost[part]["median"] <= cost[part]["p95"]
