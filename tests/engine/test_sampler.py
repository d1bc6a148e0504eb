"""A drawn token follows the request's settings, its seed and its position, and nothing else."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.protocol.steps import Sampling
from engine.runner.filters import keep, largest, top_p
from engine.runner.noise import uniform
from tests.engine.drawing import VOCAB, draw, logits_of, tokens

samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 1e-9, 1e-4, 0.3, 1.0, 5.0, 1e9]),
    top_p=st.sampled_from([0.0, 1e-9, 0.1, 0.5, 0.95, 0.99999, 1.0]),
    top_k=st.sampled_from([0, 1, 2, 40, VOCAB, VOCAB + 9]),
    min_p=st.sampled_from([0.0, 1e-9, 0.05, 0.9, 1.0]),
    logit_bias=st.sampled_from([{}, {3: 50.0}, {3: float("-inf"), 4: -100.0}]),
    seed=st.integers(0, 2**63 - 1),
)


@pytest.mark.hazard("top-k-top-p")
@settings(deadline=None)
@given(st.integers(0, 1000), samplings, st.integers(0, 8192))
def test_any_settings_draw_one_known_token(seed: int, setting: Sampling, position: int) -> None:
    (token,) = tokens(draw(logits_of(seed), [setting], [position], VOCAB - 50))
    assert 0 <= token < VOCAB - 50


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.lists(samplings, min_size=2, max_size=6))
def test_a_row_draws_the_same_token_alone_and_in_a_batch(seed: int, rows: list[Sampling]) -> None:
    logits = logits_of(seed, len(rows))
    positions = list(range(len(rows)))
    together = tokens(draw(logits, rows, positions))
    for index, setting in enumerate(rows):
        alone = draw(logits[index : index + 1], [setting], [positions[index]])
        assert tokens(alone) == [together[index]]


@pytest.mark.hazard("top-k-top-p")
@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(0, 2**63 - 1))
def test_temperature_zero_and_top_k_one_are_greedy(seed: int, noise_seed: int) -> None:
    logits = logits_of(seed)
    best = int(logits.argmax())
    settings_list = [
        Sampling(temperature=0.0, seed=noise_seed),
        Sampling(temperature=1e-30, seed=noise_seed),
        Sampling(temperature=2.0, top_k=1, seed=noise_seed),
        Sampling(temperature=2.0, top_p=0.0, seed=noise_seed),
        Sampling(temperature=2.0, min_p=1.0, seed=noise_seed),
    ]
    for setting in settings_list:
        assert tokens(draw(logits, [setting], [3])) == [best]


@pytest.mark.hazard("padded-vocabulary")
def test_padded_ids_are_never_drawn_even_when_they_are_largest() -> None:
    logits = torch.zeros(1, VOCAB)
    logits[0, VOCAB - 1] = 100.0
    for setting in (Sampling(temperature=0.0), Sampling(temperature=1.0, seed=5)):
        assert tokens(draw(logits, [setting], [1], VOCAB - 1))[0] < VOCAB - 1


@pytest.mark.hazard("top-k-top-p")
def test_ties_keep_the_lower_ids() -> None:
    weights = np.array([0.2, 1.0, 1.0, 1.0, 0.1], np.float32)
    assert largest(weights, 2).tolist() == [1, 2]
    assert top_p(weights, 0.5).tolist() == [1, 2]
    assert keep(weights, Sampling(top_k=3, top_p=0.5)) is not None
    level = torch.zeros(1, VOCAB)
    assert tokens(draw(level, [Sampling(temperature=0.0)], [1])) == [0]
    for seed in range(20):
        assert tokens(draw(level, [Sampling(top_k=2, top_p=0.4, seed=seed)], [1])) == [0]


@pytest.mark.hazard("not-a-number")
def test_non_finite_logits_fail_their_row_alone() -> None:
    logits = logits_of(1, 4)
    clean = draw(logits, [Sampling(seed=4)] * 4, [7] * 4)
    for bad in (float("nan"), float("inf"), float("-inf")):
        broken = logits.clone()
        broken[1, 17] = bad
        draws = draw(broken, [Sampling(seed=4)] * 4, [7] * 4)
        assert [one.failed for one in draws] == [False, True, False, False]
        assert draws[0] == clean[0]
        assert draws[2:] == clean[2:]


def test_a_bias_moves_its_token_alone() -> None:
    logits = logits_of(2)
    best = int(logits.argmax())
    banned = Sampling(temperature=0.0, logit_bias={best: float("-inf")})
    second = int(logits[0].topk(2).indices[1])
    assert tokens(draw(logits, [banned], [1])) == [second]
    wanted = Sampling(temperature=1.0, logit_bias={9: 100.0})
    assert tokens(draw(logits, [wanted], [1])) == [9]


def test_a_row_without_any_allowed_token_fails_alone_and_says_so() -> None:
    nothing = Sampling(logit_bias={token: float("-inf") for token in range(VOCAB)})
    draws = draw(logits_of(3, 2), [nothing, Sampling(seed=1)], [1, 1])
    assert draws[0].failed
    assert draws[0].reason == "Every token is forbidden here."
    assert not draws[1].failed


def test_no_answer_ends_before_min_tokens() -> None:
    logits = torch.zeros(1, VOCAB)
    logits[0, 7] = logits[0, 8] = 50.0
    setting = Sampling(temperature=0.0, stop_tokens=(7, 8), min_tokens=2)
    assert tokens(draw(logits, [setting], [0])) == [0]


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**20))
def test_noise_depends_only_on_seed_and_position(seed: int, position: int) -> None:
    value = uniform(seed, position)
    assert 0 <= value < 1
    assert value == uniform(seed, position)
    assert value != uniform(seed, position + 1)
