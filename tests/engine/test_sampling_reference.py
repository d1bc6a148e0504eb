"""What is left over and how often it is drawn: against a plain implementation in float64."""

import numpy as np
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
def test_every_token_gets_its_share_of_the_noise(
    logits: Doubles, sampling: Sampling, offset: int
) -> None:
    weights = weights_of(logits, sampling)
    kept = keep(weights, sampling)
    assert kept is not None
    share = weights[kept] / weights[kept].sum()
    edges = np.concatenate([[0.0], share.cumsum()])
    places = np.random.default_rng(offset).integers(0, len(kept), 20)
    for place in places.tolist():
        middle = float(edges[place] + edges[place + 1]) / 2
        if share[place] > 1e-9:
            assert draw(weights, sampling, middle) == kept[place]


def test_unfiltered_draws_follow_the_distribution() -> None:
    random = np.random.default_rng(3)
    weights = np.exp(random.standard_normal(1000).astype(np.float32) * 2)
    weights /= weights.max()
    plain = Sampling()
    noises = (np.arange(8_000) + 0.5) / 8_000
    drawn = np.array([draw(weights, plain, noise) for noise in noises.tolist()])
    share = np.bincount(drawn, minlength=len(weights)) / len(noises)
    assert np.abs(share - weights / weights.sum()).max() < 2 / len(noises)


def test_a_token_without_weight_is_never_drawn() -> None:
    weights = np.zeros(1000, np.float32)
    weights[700] = 1.0
    weights[3] = 1e-30
    for noise in (0.0, 0.3, 1 - 2.0**-53):
        assert draw(weights, Sampling(), noise) in (3, 700)
        assert draw(weights, Sampling(top_k=5), noise) in (3, 700)
        assert draw(weights, Sampling(top_p=0.9), noise) == 700
