"""A drawn token follows the request's settings, its seed and its position, and nothing else."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.protocol.steps import Sampling
from engine.runner.noise import uniform
from engine.runner.sampler import keep_top_k, keep_top_p, sample

VOCAB = 600


def logits_of(seed: int, rows: int = 1) -> Tensor:
    return torch.randn(rows, VOCAB, generator=torch.Generator().manual_seed(seed)) * 3


samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 1e-6, 0.3, 1.0, 5.0]),
    top_p=st.sampled_from([0.0, 1e-9, 0.1, 0.5, 0.95, 1.0]),
    top_k=st.sampled_from([0, 1, 2, 40, VOCAB, VOCAB + 9]),
    seed=st.integers(0, 2**63 - 1),
)


@settings(deadline=None)
@given(st.integers(0, 1000), samplings, st.integers(0, 8192))
def test_any_settings_draw_one_known_token(seed: int, setting: Sampling, position: int) -> None:
    draws = sample(logits_of(seed), [setting], [position], token_count=VOCAB - 50)
    assert draws.finite == [True]
    assert 0 <= draws.tokens[0] < VOCAB - 50


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.lists(samplings, min_size=2, max_size=6))
def test_a_row_draws_the_same_token_alone_and_in_a_batch(seed: int, rows: list[Sampling]) -> None:
    logits = logits_of(seed, len(rows))
    positions = list(range(len(rows)))
    together = sample(logits, rows, positions, VOCAB).tokens
    for index, setting in enumerate(rows):
        alone = sample(logits[index : index + 1], [setting], [positions[index]], VOCAB)
        assert alone.tokens == [together[index]]


@given(st.integers(0, 1000), st.integers(0, 2**63 - 1))
def test_temperature_zero_and_top_k_one_are_greedy(seed: int, noise_seed: int) -> None:
    logits = logits_of(seed)
    best = int(logits.argmax())
    settings_list = [
        Sampling(temperature=0.0, seed=noise_seed),
        Sampling(temperature=2.0, top_k=1, seed=noise_seed),
        Sampling(temperature=2.0, top_p=0.0, seed=noise_seed),
    ]
    for setting in settings_list:
        assert sample(logits, [setting], [3], VOCAB).tokens == [best]


def test_padded_ids_are_never_drawn_even_when_they_are_largest() -> None:
    logits = torch.zeros(1, VOCAB)
    logits[0, VOCAB - 1] = 100.0
    for setting in (Sampling(temperature=0.0), Sampling(temperature=1.0, seed=5)):
        assert sample(logits, [setting], [1], VOCAB - 1).tokens[0] < VOCAB - 1


def test_ties_keep_the_lower_ids() -> None:
    weights = torch.tensor([1.0, 3.0, 3.0, 3.0, 0.5]).double()
    assert keep_top_k(weights, 2).nonzero().squeeze(1).tolist() == [1, 2]
    assert keep_top_p(weights, 0.5).nonzero().squeeze(1).tolist() == [1, 2]


@given(st.integers(0, 500), st.floats(0.01, 0.999))
def test_top_p_keeps_the_fewest_tokens_that_reach_p(seed: int, p: float) -> None:
    weights = logits_of(seed)[0].double().softmax(0)
    kept = keep_top_p(weights, p)
    chosen = kept[kept > 0]
    assert float(chosen.sum()) >= p - 1e-12
    assert float(chosen.sum() - chosen.min()) < p
    assert float(chosen.min()) >= float(weights[kept == 0].max())


def test_non_finite_logits_fail_their_row_alone() -> None:
    logits = logits_of(1, 3)
    clean = sample(logits, [Sampling(seed=4)] * 3, [7, 7, 7], VOCAB)
    logits[1, 17] = float("nan")
    draws = sample(logits, [Sampling(seed=4)] * 3, [7, 7, 7], VOCAB)
    assert draws.finite == [True, False, True]
    assert (draws.tokens[0], draws.tokens[2]) == (clean.tokens[0], clean.tokens[2])


def test_draws_follow_the_distribution() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0]])
    settings_list = [Sampling(seed=seed) for seed in range(4000)]
    drawn = sample(logits.expand(4000, 3), settings_list, [11] * 4000, 3).tokens
    shares = torch.bincount(torch.tensor(drawn), minlength=3) / 4000
    assert torch.allclose(shares, logits[0].softmax(0), atol=0.03)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**20))
def test_noise_depends_only_on_seed_and_position(seed: int, position: int) -> None:
    value = uniform(seed, position)
    assert 0 <= value < 1
    assert value == uniform(seed, position)
    assert value != uniform(seed, position + 1)
