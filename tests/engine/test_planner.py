"""The memory a plan needs, and the reason when a node lacks it."""

import pytest

from engine.bundled import bundled_model
from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig, ParallelPlan
from engine.errors import PlanError
from engine.model_config import ModelConfig
from engine.planner import rank_memory

MIB = 1024**2


@pytest.fixture(scope="module")
def model() -> ModelConfig:
    return open_checkpoint(bundled_model()).config


def test_the_numbers_are_those_the_ranks_report(model: ModelConfig) -> None:
    config = EngineConfig(plan=ParallelPlan(tp=2), dtype="int8")
    first, second = (rank_memory(model, config, rank) for rank in range(2))
    assert (first.weights, second.weights) == (343_915_776, 308_487_936)
    assert first.kv == 2 * second.kv == 503_808_000


def test_int8_is_smaller_only_where_the_processor_multiplies_integers(model: ModelConfig) -> None:
    config = EngineConfig(dtype="int8")
    plain = rank_memory(model, config, 0)
    compact = rank_memory(model, config, 0, integer_dot_products=True)
    assert plain.weights > rank_memory(model, EngineConfig(), 0).weights
    assert compact.weights < plain.weights / 2


def test_every_stage_holds_its_layers_only(model: ModelConfig) -> None:
    config = EngineConfig(plan=ParallelPlan(pp=2))
    whole = rank_memory(model, EngineConfig(), 0)
    parts = [rank_memory(model, config, rank) for rank in range(2)]
    assert sum(part.kv for part in parts) == whole.kv
    table = model.vocab_size * model.hidden_size * 4
    assert sum(part.weights for part in parts) == whole.weights + table, "each end has the table"


@pytest.mark.hazard("tp-beyond-heads")
def test_a_plan_the_model_cannot_take_is_refused(model: ModelConfig) -> None:
    with pytest.raises(PlanError, match="9 query heads"):
        rank_memory(model, EngineConfig(plan=ParallelPlan(tp=10)), 0)
