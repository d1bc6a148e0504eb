"""Split over ranks, the output rank alone draws and scores, and says the same as one rank would."""

from pathlib import Path

import pytest

from engine.config import EngineConfig, ParallelPlan
from engine.protocol.steps import Result, Sampling
from engine.text.grammar import compile_json_schema
from tests.engine.local_runner import LocalRunner
from tests.engine.rank_fleet import RankFleet
from tests.engine.step_maker import StepMaker
from tests.engine.tiny_model import write_tiny_model

PROMPT = [5, 80, 33, 120, 7, 61, 200, 18, 44, 92] * 12
SETTINGS = [
    Sampling(seed=3, grammar=compile_json_schema({"enum": ["one", "two"]}), stop_tokens=(2,)),
    Sampling(seed=4, repetition_penalty=1.3, frequency_penalty=0.4, logprobs=3),
    Sampling(temperature=0.0, grammar="start: <|nobody|>"),
]


def converse(steps: StepMaker) -> list[Result]:
    """A scored prompt in two chunks, then three sequences until the first has ended."""
    scored = steps.open(PROMPT, Sampling(temperature=0.0, logprobs=2))
    scored.scored = True
    results = [steps.advance([scored], [70]), steps.advance([scored], [50])]
    steps.close(scored)
    streams = [steps.open(PROMPT[:7], sampling) for sampling in SETTINGS]
    results.append(steps.advance(streams, [7, 7, 7]))
    steps.close(streams.pop())
    while streams[0].output[-1] != 2:
        results.append(steps.advance(streams, [1, 1]))
    return results


@pytest.mark.parametrize("plan", ["tp=2", "pp=2"])
def test_every_plan_draws_and_scores_alike(plan: str, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", tied=False)
    config = EngineConfig(kv_cache_tokens=1024)
    alone = converse(LocalRunner(path, config))
    split = EngineConfig(kv_cache_tokens=1024, plan=ParallelPlan.parse(plan))
    with RankFleet(path, split, tmp_path) as fleet:
        together = converse(fleet)
    assert len(together) == len(alone)
    for one, other in zip(together, alone, strict=True):
        assert one.tokens == other.tokens
        assert (one.failed, one.reasons) == (other.failed, other.reasons)
        assert [report and report.token for report in one.logprobs] == [
            report and report.token for report in other.logprobs
        ]
        for seq, scores in one.scores.items():
            for score, expected in zip(scores, other.scores[seq], strict=True):
                assert (score.token, score.rank) == (expected.token, expected.rank)
                assert score.logprob == pytest.approx(expected.logprob, abs=1e-3)
    assert len(together[0].scores) == len(together[1].scores) == 1
    assert together[2].reasons
