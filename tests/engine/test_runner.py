"""A sequence depends on its own history alone, not on chunks, batches, blocks or replays."""

from pathlib import Path

import pytest

from engine.config import Dtype, EngineConfig
from engine.protocol.steps import Admit, Row, Sampling
from tests.engine.local_runner import LocalRunner
from tests.engine.step_maker import GREEDY
from tests.engine.tiny_model import write_tiny_model

PROMPT = [5, 80, 33, 120, 7, 61, 200, 18, 44, 92, 150, 3, 77, 31, 210, 9, 64, 128, 25, 140]
OTHERS = [[11, 60, 90], [200] * 37, [14, 15, 16, 17, 18]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf", tied=False)


def local(model: Path, dtype: Dtype = "int8", budget: int = 256) -> LocalRunner:
    config = EngineConfig(
        dtype=dtype, token_budget=budget, max_batch_size=min(32, budget), kv_cache_tokens=1024
    )
    return LocalRunner(model, config)


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
def test_chunked_prefill_gives_the_same_tokens(model: Path, dtype: Dtype) -> None:
    whole = local(model, dtype).generate([PROMPT], 24)
    assert local(model, dtype, budget=3).generate([PROMPT], 24) == whole


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
def test_batch_mates_change_nothing(model: Path, dtype: Dtype) -> None:
    alone = local(model, dtype).generate([PROMPT], 24)[0]
    assert local(model, dtype).generate([*OTHERS, PROMPT], 24)[-1] == alone


def test_a_reused_prefix_block_gives_the_same_tokens(model: Path) -> None:
    runner = local(model)
    first = runner.open(PROMPT)
    expected = runner.generate([PROMPT], 10)[0]
    runner.advance([first], [len(PROMPT)])
    second = runner.open(PROMPT)
    row = Row(second.seq, PROMPT[16:], 16, [first.blocks[0], 40], True, Admit(GREEDY))
    second.computed, second.blocks = len(PROMPT), [first.blocks[0], 40]
    result = runner.run(runner.make_step([row], [second]))
    assert result.tokens == expected[:1]


def test_a_replay_with_the_same_seed_continues_identically(model: Path) -> None:
    sampling = Sampling(temperature=1.0, top_p=0.9, seed=1234)
    tokens = local(model).generate([PROMPT], 20, sampling)[0]
    resumed = local(model).generate([PROMPT + tokens[:8]], 12, sampling)[0]
    assert resumed == tokens[8:]
    assert local(model).generate([PROMPT], 20, Sampling(seed=99))[0] != tokens


def test_a_step_without_samples_gives_no_tokens(model: Path) -> None:
    runner = local(model)
    stream = runner.open(PROMPT)
    assert runner.advance([stream], [7]).tokens == []
    assert len(runner.advance([stream], [13]).tokens) == 1


def test_non_finite_numbers_fail_one_sequence_and_leave_no_trace_in_its_blocks(
    model: Path,
) -> None:
    runner = local(model, "fp32")
    clean = runner.generate([OTHERS[0]], 6)[0]
    assert runner.decoder.embedding is not None
    runner.decoder.embedding.table[250] = float("nan")
    poisoned, healthy = runner.open([1, 2, 250, 4]), runner.open(OTHERS[0])
    result = runner.advance([poisoned, healthy], [4, 3])
    assert result.failed == [poisoned.seq]
    assert healthy.output == clean[:1]
    # The poisoned blocks come back first and hold the next sequence, tail slots included.
    runner.close(poisoned)
    runner.close(healthy)
    runner._free = sorted(runner._free)
    assert runner.generate([OTHERS[0]], 6)[0] == clean
