"""The engine's own kernels multiply as torch does: int8 to the last bit, int4 within rounding."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.kernels.int4 import Int4Linear
from engine.kernels.int8 import Int8ExactFp32Linear
from engine.kernels.native import Int4NativeLinear, Int8NativeLinear
from tests.engine.native import kernels


@pytest.fixture(autouse=True)
def compiled() -> None:
    kernels()


def random(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tokens_of(seed: int, tokens: int, columns: int) -> Tensor:
    """Tokens of very different sizes, with channels that are far larger than the rest."""
    x = random(seed, tokens, columns) * random(seed + 1, tokens, 1).exp()
    x[:, 0] *= 50
    return x


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.sampled_from([1, 2, 3, 4, 5, 7, 15, 16, 17, 33]),
    rows=st.integers(1, 120),
    columns=st.integers(1, 40).map(lambda count: 4 * count) | st.sampled_from([576, 1536, 2080]),
    biased=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_int8_is_the_same_to_the_last_bit(
    tokens: int, rows: int, columns: int, biased: bool, seed: int
) -> None:
    weight, bias = random(seed, rows, columns), random(seed + 1, rows) if biased else None
    x = tokens_of(seed, tokens, columns)
    assert torch.equal(Int8NativeLinear(weight, bias)(x), Int8ExactFp32Linear(weight, bias)(x))


@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize(("rows", "columns"), [(50, 100), (96, 576), (16, 1536), (7, 32)])
def test_int4_is_the_same_within_rounding(rows: int, columns: int, group: int) -> None:
    weight, bias, x = random(1, rows, columns), random(2, rows), tokens_of(3, 9, columns)
    ours = Int4NativeLinear(weight, bias, group=group)(x)
    theirs = Int4Linear(weight, bias, group=group)(x)
    assert torch.allclose(ours, theirs, rtol=2e-3, atol=2e-3 * float(theirs.abs().max()))


@pytest.mark.parametrize("kernel", [Int8NativeLinear, Int4NativeLinear])
def test_a_token_gives_the_same_bits_in_any_batch_and_on_any_threads(
    kernel: type[Int8NativeLinear] | type[Int4NativeLinear],
) -> None:
    linear, x = kernel(random(1, 200, 576)), tokens_of(2, 40, 576)
    library = kernels()
    try:
        whole = linear(x)
        for threads in (2, 3, 1):
            library.threads(threads)
            for count in (1, 2, 5, 16, 40):
                assert torch.equal(linear(x[:count]), whole[:count])
    finally:
        library.threads(1)


@pytest.mark.parametrize("poison", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("kernel", [Int8NativeLinear, Int4NativeLinear])
def test_a_poisoned_token_is_found_and_spoils_no_other(
    kernel: type[Int8NativeLinear] | type[Int4NativeLinear], poison: float
) -> None:
    linear, x = kernel(random(1, 48, 96)), tokens_of(2, 20, 96)
    clean = linear(x)
    x[3, 5] = poison
    dirty = linear(x)
    assert not dirty[3].isfinite().any()
    others = [index for index in range(20) if index != 3]
    assert torch.equal(dirty[others], clean[others])


@pytest.mark.parametrize("kernel", [Int8NativeLinear, Int4NativeLinear])
def test_a_row_of_zeros_stays_zero(
    kernel: type[Int8NativeLinear] | type[Int4NativeLinear],
) -> None:
    assert torch.equal(kernel(random(1, 48, 96))(torch.zeros(2, 96)), torch.zeros(2, 48))
