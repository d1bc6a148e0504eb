"""Before a rank is ready it computes once what will be asked of it."""

from pathlib import Path

import pytest
from torch import Tensor

from engine.config import EngineConfig
from engine.layers import StepInputs
from engine.models import Decoder
from tests.engine.local_runner import LocalRunner
from tests.engine.tiny_model import write_tiny_model

CONFIG = EngineConfig(max_batch_size=5, token_budget=64, kv_cache_tokens=1024)
PROMPT = [5, 80, 33]


@pytest.fixture
def runner(tmp_path: Path) -> LocalRunner:
    return LocalRunner(write_tiny_model(tmp_path / "tiny.gguf"), CONFIG)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens of every pass through the layers."""
    sizes: list[int] = []
    compute = Decoder.hidden

    def counted(decoder: Decoder, inputs: StepInputs) -> Tensor | None:
        sizes.append(len(inputs.tokens))
        return compute(decoder, inputs)

    monkeypatch.setattr(Decoder, "hidden", counted)
    return sizes


def test_the_first_time_that_is_a_long_prompt_and_the_largest_batch(
    runner: LocalRunner, passes: list[int]
) -> None:
    runner.runner.warm_up()
    assert passes == [64, 5, 1]


def test_after_a_fault_it_is_a_short_prompt_and_one_row(
    runner: LocalRunner, passes: list[int]
) -> None:
    runner.runner.warm_up(full=False)
    assert passes == [16, 1]


def test_it_leaves_nothing_behind(runner: LocalRunner) -> None:
    expected = runner.generate([PROMPT], 8)
    runner.runner.warm_up(full=False)
    assert runner.generate([PROMPT], 8) == expected
