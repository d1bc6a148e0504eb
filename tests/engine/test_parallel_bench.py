"""The bench of parallel plans answers full batches over real ranks, in turns or all at once."""

from pathlib import Path

import pytest

from engine.bench.parallel import ANSWER, BATCH, Side
from tests.engine.tiny_model import write_tiny_model


@pytest.mark.parametrize(("batches", "share"), [(None, 2), (1, 1)])
def test_a_pipeline_has_a_batch_for_each_stage_or_one(
    tmp_path: Path, batches: int | None, share: int
) -> None:
    side = Side(write_tiny_model(tmp_path / "tiny.gguf"), "tp=1,pp=2", "side", batches=batches)
    with side.fleet:
        assert side.fleet.transport == "shm"
        assert side.run(BATCH) > 0
    assert side.scheduler.counters.steps == pytest.approx(ANSWER * share, abs=2)
