"""What is left over and how often it is drawn: against a plain implementation in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.protocol.steps import Sampling
from engine.runner.filters import draw, keep

Doubles = NDArray[np.float64]


def reference(logits: Doubles, sampling: Sampling) -> Doubles:
    """Probability of every token, worked out one token at a time."""
    weights = [float(np.exp((logit - logits.max()) / sampling.temperature)) for logit in logits]
    best_first = sorted(range(len(weights)), key=lambda token: (-weights[token], token))
    kept = [token for token in best_first if weights[token] >= sampling.min_p]
    if sampling.top_k:
        kept = kept[: sampling.top_k]
    total, held, nucleus = sum(weights[token] for token in kept), 0.0, []
    for token in kept:
        nucleus.append(token)
        held += weights[token]
        if held >= sampling.top_p * total:
            break
    share = np.zeros(len(weights))
    for token in nucleus:
        share[token] = weights[token] / held
    return share


def weights_of(logits: Doubles, sampling: Sampling) -> Doubles:
    weights: Doubles = np.exp((logits - logits.max()) / sampling.temperature)
    return weights


rows = st.lists(st.integers(-40, 40).map(lambda tenth: tenth / 10), min_size=2, max_size=700).map(
    np.array
)
samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.2, 0.7, 1.0, 3.0]),
    top_p=st.floats(0.003, 0.997),
    top_k=st.sampled_from([0, 1, 2, 5, 40, 1000]),
    min_p=st.sampled_from([0.0, 0.01, 0.3]),
)


@settings(deadline=None, max_examples=150)
@given(rows, samplings)
def test_the_same_tokens_are_left_over(logits: Doubles, sampling: Sampling) -> None:
    kept = keep(weights_of(logits, sampling), sampling)
    expected = np.flatnonzero(reference(logits, sampling))
    assert kept is not None
    # At the very edge of top-p, sums in another order may keep one token more or less.
    assert len(set(kept.tolist()) ^ set(expected.tolist())) <= 1


@settings(deadline=None, max_examples=60)
@given(rows, samplings, st.integers(0, 2**32))
def test_only_tokens_that_are_left_over_are_drawn(
    logits: Doubles, sampling: Sampling, seed: int
) -> None:
    weights = weights_of(logits, sampling)
    kept = keep(weights, sampling)
    assert kept is not None
    assert {draw(weights, sampling, seed, position) for position in range(20)} <= set(kept.tolist())


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(top_k=90), Sampling(top_p=0.8)])
def test_draws_follow_the_distribution(sampling: Sampling) -> None:
    random = np.random.default_rng(3)
    logits = random.standard_normal(600) * 2
    weights = weights_of(logits, sampling)
    count = 12_000
    drawn = np.array([draw(weights, sampling, 11, position) for position in range(count)])
    expected = reference(logits, sampling)
    share = np.bincount(drawn, minlength=len(weights)) / count
    # Five standard deviations of each token's share.
    assert (np.abs(share - expected) <= 5 * np.sqrt(expected / count) + 1e-9).all()


@pytest.mark.hazard("batch-numerics")
def test_the_last_bits_of_the_logits_do_not_change_a_seeded_draw() -> None:
    """A hot, flat row over a real vocabulary, as another batch would have computed it."""
    random = np.random.default_rng(5)
    sampling = Sampling(temperature=1.7)
    logits = random.standard_normal(49_152)
    other = logits + random.standard_normal(len(logits)) * 1e-5
    one, two = weights_of(logits, sampling), weights_of(other, sampling)
    differ = [at for at in range(2_000) if draw(one, sampling, 7, at) != draw(two, sampling, 7, at)]
    assert len(differ) <= 1


def test_a_token_without_weight_is_never_drawn() -> None:
    weights = np.zeros(1000, np.float32)
    weights[700] = 1.0
    weights[3] = 1e-30
    for position in range(200):
        assert draw(weights, Sampling(), 1, position) in (3, 700)
        assert draw(weights, Sampling(top_k=5), 1, position) in (3, 700)
        assert draw(weights, Sampling(top_p=0.9), 1, position) == 700
