"""A request that lost its blocks and comes back goes on as if nothing had happened."""

import pytest

from engine.config import EngineConfig
from engine.protocol.steps import Sampling
from engine.text.grammar import compile_json_schema
from tests.engine.local_runner import LocalRunner
from tests.engine.step_maker import Stream
from tests.engine.tiny_model import write_tiny_model

PROMPT = [5, 80, 33, 120, 7, 61, 200, 18, 44, 92, 150, 3, 77, 31, 210, 9, 64, 128, 25, 140]
OTHER = [11, 60, 90, 12, 13]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "size": {"type": "integer"}},
    "required": ["name", "size"],
}
SETTINGS = {
    "penalties": Sampling(
        seed=7, repetition_penalty=1.4, presence_penalty=0.7, frequency_penalty=0.5
    ),
    "seeded": Sampling(seed=11, top_p=0.9, top_k=50, min_p=0.01),
    "grammar": Sampling(seed=5, grammar=compile_json_schema(SCHEMA), stop_tokens=(2,)),
    "min tokens": Sampling(seed=3, stop_tokens=tuple(range(3, 250)), min_tokens=12),
}


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> LocalRunner:
    path = write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf")
    return LocalRunner(path, EngineConfig(token_budget=32, kv_cache_tokens=1024))


def write(runner: LocalRunner, sampling: Sampling, pauses: tuple[int, ...]) -> list[int]:
    """Eighteen tokens; the sequence is released and admitted again after each pause."""
    stream = runner.open(PROMPT, sampling)
    while len(stream.output) < 18:
        if len(stream.output) in pauses and stream.computed:
            pauses = tuple(pause for pause in pauses if pause != len(stream.output))
            stream = runner.reopen(stream)
        step(runner, stream)
    runner.close(stream)
    return stream.output


def step(runner: LocalRunner, *streams: Stream) -> None:
    runner.advance(
        list(streams), [min(6, len(stream.tokens) - stream.computed) for stream in streams]
    )


@pytest.mark.hazard("preemption-seed")
@pytest.mark.parametrize("name", SETTINGS)
def test_an_answer_goes_on_after_preemption(runner: LocalRunner, name: str) -> None:
    undisturbed = write(runner, SETTINGS[name], ())
    assert write(runner, SETTINGS[name], (1, 6, 7, 15)) == undisturbed


def test_settings_of_one_request_leave_its_batch_mates_alone(runner: LocalRunner) -> None:
    alone = [write(runner, sampling, ()) for sampling in SETTINGS.values()]
    streams = [runner.open(PROMPT, sampling) for sampling in SETTINGS.values()]
    mate = runner.open(OTHER, Sampling(seed=1))
    while active := [stream for stream in streams if len(stream.output) < 18]:
        step(runner, *active, mate)
    assert [stream.output for stream in streams] == alone
