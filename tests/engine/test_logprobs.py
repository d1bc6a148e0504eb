"""Reported probabilities are the model's own, of tokens that exist."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.config import EngineConfig
from engine.protocol.steps import Sampling, TokenLogprobs
from engine.runner import batch
from tests.engine.drawing import VOCAB, draw, logits_of
from tests.engine.local_runner import LocalRunner
from tests.engine.step_maker import GREEDY
from tests.engine.tiny_model import PADDING, vocabulary, write_tiny_model

PROMPT = [5, 80, 33, 120, 7, 61, 200, 18, 44, 92, 150, 3, 77, 31, 210, 9, 64, 128, 25, 140] * 8
KNOWN = len(vocabulary())


def check(report: TokenLogprobs, logits: Tensor, top: int) -> None:
    """Against a log-softmax of the logits of tokens that exist."""
    expected = logits.double().log_softmax(0)
    assert report.logprob == pytest.approx(float(expected[report.token]), abs=1e-4)
    ranked = sorted(range(len(expected)), key=lambda token: (-float(logits[token]), token))
    assert report.rank == ranked.index(report.token) + 1
    assert [token for token, _ in report.top] == ranked[:top]
    for token, logprob in report.top:
        assert logprob == pytest.approx(float(expected[token]), abs=1e-4)


@pytest.mark.hazard("logprob-ids")
@pytest.mark.parametrize("top", [0, 1, 5, 20, VOCAB])
def test_a_drawn_token_is_reported_with_its_rank_and_the_likeliest(top: int) -> None:
    logits, known = logits_of(4), VOCAB - 40
    logits[0, known:] += 1000.0
    for setting in (
        Sampling(temperature=0.0, logprobs=top),
        Sampling(temperature=5.0, seed=9, logprobs=top, logit_bias={3: 20.0}),
    ):
        (drawn,) = draw(logits, [setting], [1], known)
        assert drawn.logprobs is not None
        assert drawn.logprobs.token == drawn.token
        check(drawn.logprobs, logits[0, :known], min(top, known))


@pytest.mark.hazard("logprob-ids")
def test_equal_tokens_are_reported_by_id() -> None:
    (drawn,) = draw(torch.zeros(1, VOCAB), [Sampling(temperature=0.0, logprobs=3)], [1])
    assert drawn.logprobs is not None
    assert [token for token, _ in drawn.logprobs.top] == [0, 1, 2]
    assert drawn.logprobs.rank == 1


def test_only_those_who_asked_get_a_report() -> None:
    draws = draw(logits_of(5, 2), [Sampling(logprobs=2), Sampling()], [1, 1])
    assert draws[0].logprobs is not None
    assert draws[1].logprobs is None


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


def local(model: Path, budget: int = 256) -> LocalRunner:
    config = EngineConfig(token_budget=budget, max_batch_size=min(32, budget), kv_cache_tokens=2048)
    return LocalRunner(model, config)


def scores_of(runner: LocalRunner, sampling: Sampling, chunk: int) -> list[TokenLogprobs]:
    stream = runner.open(PROMPT, sampling)
    stream.scored = True
    mate = runner.open([9, 8, 7])
    found: list[TokenLogprobs] = []
    while not stream.output:
        counts = [min(chunk, len(PROMPT) - stream.computed), len(mate.tokens) - mate.computed]
        result = runner.advance([stream, mate], counts)
        assert set(result.scores) <= {stream.seq}
        found += result.scores.get(stream.seq, ())
    return found


def test_every_prompt_token_is_scored_whole_or_in_chunks(model: Path) -> None:
    sampling = Sampling(temperature=0.0, logprobs=4)
    scores = scores_of(local(model), sampling, len(PROMPT))
    runner = local(model)
    rows = batch.build_batch(
        [batch.BatchRow(PROMPT, 0, list(range(10)), True)], runner.decoder.reach
    )
    hidden = runner.decoder.hidden(rows.inputs)
    assert hidden is not None
    logits = runner.decoder.logits(hidden, torch.arange(len(PROMPT)))
    assert logits is not None
    assert logits.shape[1] == KNOWN + PADDING
    assert [score.token for score in scores] == PROMPT[1:]
    for place, score in enumerate(scores):
        check(score, logits[place, :KNOWN], 4)
    for chunk in (1, 67):
        again = scores_of(local(model), sampling, chunk)
        assert [score.token for score in again] == PROMPT[1:]
        for one, other in zip(scores, again, strict=True):
            assert one.logprob == pytest.approx(other.logprob, abs=1e-4)


def test_scores_without_likeliest_tokens_when_none_were_asked_for(model: Path) -> None:
    scores = scores_of(local(model), GREEDY, 100)
    assert len(scores) == len(PROMPT) - 1
    assert all(score.top == () for score in scores)


def test_reports_stand_beside_the_tokens_of_their_rows(model: Path) -> None:
    runner = local(model)
    asked, quiet = Sampling(seed=1, logprobs=1), Sampling(seed=2)
    streams = [runner.open(PROMPT[:n], setting) for n, setting in ((30, quiet), (3, asked))]
    result = runner.advance(streams, [30, 3])
    assert result.logprobs[0] is None
    assert result.logprobs[1] is not None
    assert result.logprobs[1].token == result.tokens[1]
    assert runner.advance(streams[:1], [1]).logprobs == ()
