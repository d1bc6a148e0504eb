"""A rank goes on with the token that it drew itself, before the head knows it."""

from pathlib import Path

import msgspec
import pytest

from engine.config import EngineConfig, ParallelPlan
from engine.errors import ProtocolError
from engine.protocol.steps import PENDING, Admit, Row, Sampling, Step, step_digest
from engine.runner.mirror import Mirror
from tests.engine.local_runner import LocalRunner
from tests.engine.step_maker import GREEDY
from tests.engine.test_readmission import SETTINGS
from tests.engine.tiny_model import write_tiny_model

PROMPT = [5, 80, 33, 120, 7, 61, 200, 18, 44, 92, 150, 3, 77, 31, 210, 9, 64, 128, 25, 140]
OTHERS = [[11, 60, 90], [200] * 37, [14, 15, 16, 17, 18]]
CONFIG = EngineConfig(token_budget=32, kv_cache_tokens=1024)
LOGPROBS = Sampling(seed=2, logprobs=2, presence_penalty=0.5)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture
def overlapped(model: Path) -> LocalRunner:
    runner = LocalRunner(model, CONFIG)
    runner.overlapped = True
    return runner


@pytest.mark.parametrize("sampling", [GREEDY, LOGPROBS, *SETTINGS.values()])
def test_an_answer_is_the_same_as_one_step_at_a_time(
    model: Path, overlapped: LocalRunner, sampling: Sampling
) -> None:
    prompts = [PROMPT, *OTHERS]
    expected = LocalRunner(model, CONFIG).generate(prompts, 20, sampling)
    assert overlapped.generate(prompts, 20, sampling) == expected


def test_a_row_behind_one_that_failed_harms_nobody(overlapped: LocalRunner) -> None:
    """The step was sent before the head could know."""
    nothing = Sampling(grammar="no grammar", repetition_penalty=2.0)
    lost, fine = overlapped.open(PROMPT, nothing), overlapped.open(OTHERS[0])
    assert overlapped.advance([lost, fine], [len(PROMPT), 3]).failed == [lost.seq]
    assert overlapped.advance([lost, fine], [1, 1]).failed == [lost.seq]
    overlapped.close(lost)
    overlapped.advance([fine], [1])
    assert fine.output == overlapped.generate([OTHERS[0]], 3)[0]


def follow(row: Row, n: int = 1) -> Step:
    return Step(1, n, [row], [], step_digest(1, n, [(1, row.start + 1, 1)]))


@pytest.fixture
def mirror() -> Mirror:
    """One sequence has three tokens, and a fourth was drawn."""
    mirror = Mirror(epoch=1, num_blocks=8, vocab_size=100, token_limit=64)
    row = Row(1, [1, 2, 3], 0, [4], True, Admit(Sampling()))
    mirror.apply(Step(1, 0, [row], [], step_digest(1, 0, [(1, 3, 1)])))
    return mirror


def test_a_token_that_is_being_drawn_counts_like_any_other(mirror: Mirror) -> None:
    mirror.apply(follow(Row(1, [PENDING], 3, [], True)))
    mirror.apply(follow(Row(1, [PENDING], 4, [], True), n=2))
    assert mirror.sequences[1].computed == 5
    with pytest.raises(ProtocolError, match="differ"):
        mirror.apply(msgspec.structs.replace(follow(Row(1, [9], 5, [], True), n=3), digest=b"x"))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (Row(1, [PENDING, PENDING], 4, [], True), "vocabulary"),
        (Row(1, [PENDING], 4, [], True, targets=(5,)), "does not draw"),
        (Row(1, [PENDING], 4, [], True), "does not draw"),
    ],
)
def test_a_token_that_nobody_draws_is_refused(mirror: Mirror, row: Row, reason: str) -> None:
    mirror.apply(follow(Row(1, [PENDING], 3, [], reason == "vocabulary" or bool(row.targets))))
    with pytest.raises(ProtocolError, match=reason):
        mirror.apply(follow(row, n=2))


def test_a_pipeline_draws_nothing_ahead(model: Path) -> None:
    """Its first stage never learns of a token but from the head."""
    runner = LocalRunner(model, CONFIG)
    runner.overlapped = True
    runner.runner._config = msgspec.structs.replace(CONFIG, plan=ParallelPlan(pp=2))
    stream = runner.open(PROMPT)
    runner.advance([stream], [len(PROMPT)])
    with pytest.raises(ProtocolError, match="pipeline"):
        runner.advance([stream], [1])
