"""int8 kernels agree bit for bit with each other and at every batch size."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.config import EngineConfig
from engine.kernels.capabilities import choose_linear
from engine.kernels.int8 import (
    EXACT_COLUMNS,
    Int8ExactFp32Linear,
    Int8Linear,
    Int8OneDnnLinear,
)
from engine.kernels.linear import Fp32Linear
from engine.quant import LIMIT, Rotation


def random(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("columns", [64, 576, 1040, 1056, 1536, 4096])
@pytest.mark.parametrize("tokens", [1, 3, 32])
def test_both_int8_kernels_give_the_same_bits(tokens: int, columns: int) -> None:
    weight, x = random(1, 96, columns), random(2, tokens, columns)
    assert torch.equal(Int8OneDnnLinear(weight)(x), Int8ExactFp32Linear(weight)(x))


@pytest.mark.parametrize("columns", [1040, 1536, 3000])
@pytest.mark.parametrize("kernel", [Int8OneDnnLinear, Int8ExactFp32Linear])
def test_sums_stay_exact_at_the_largest_values(kernel: type[Int8Linear], columns: int) -> None:
    linear = kernel(torch.zeros(8, columns))
    linear._pack(torch.full((8, columns), float(LIMIT)))
    total = linear.multiply(torch.full((5, columns), float(LIMIT)))
    assert torch.equal(total, torch.full((5, 8), float(columns * LIMIT * LIMIT)))
    assert EXACT_COLUMNS * LIMIT * LIMIT < 2**24


@pytest.mark.parametrize("columns", [31, 96, 576, 1536])
def test_a_rotation_keeps_dot_products(columns: int) -> None:
    rotation, x, weight = Rotation(columns), random(1, 4, columns), random(2, 7, columns)
    rotated, scales = rotation.tokens(x)
    assert torch.allclose(
        (rotated * scales) @ rotation.weights(weight).t(), x @ weight.t(), atol=2e-2
    )
    assert torch.equal(rotated, rotated.round())


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 40), st.integers(0, 2**31))
def test_a_token_gives_the_same_bits_in_any_batch(tokens: int, seed: int) -> None:
    _, factory = choose_linear(EngineConfig(dtype="int8"))
    linear = factory(random(3, 128, 1536))
    x = random(seed, tokens, 1536)
    together = linear(x)
    for row in range(tokens):
        assert torch.equal(linear(x[row : row + 1])[0], together[row])


def test_int8_is_close_to_fp32() -> None:
    weight, x = random(4, 256, 576), random(5, 8, 576)
    exact, approximate = Fp32Linear(weight)(x), Int8ExactFp32Linear(weight)(x)
    assert (exact - approximate).norm() / exact.norm() < 0.02


def test_a_row_of_zeros_stays_zero() -> None:
    linear = Int8ExactFp32Linear(torch.cat((torch.zeros(1, 64), random(6, 3, 64))))
    result = linear(torch.cat((torch.zeros(1, 64), random(7, 2, 64))))
    assert not result[0].any()
    assert not result[:, 0].any()


@pytest.mark.parametrize("kernel", [Int8OneDnnLinear, Int8ExactFp32Linear, Fp32Linear])
@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_poisoned_token_is_found_and_spoils_no_other(
    kernel: type[Int8Linear | Fp32Linear], poison: float
) -> None:
    linear, x = kernel(random(8, 32, 64)), random(9, 4, 64)
    clean = linear(x)
    x[2, 5] = poison
    result = linear(x)
    assert not result[2].isfinite().any()
    assert torch.equal(result[[0, 1, 3]], clean[[0, 1, 3]])
