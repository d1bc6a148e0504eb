"""A token's result from a linear layer is its own, whatever shares its batch, in every kernel."""

from collections.abc import Callable
from functools import cache, partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.kernels import Linear
from engine.kernels.bf16 import Bf16NativeLinear, Bf16UpcastLinear
from engine.kernels.fp8 import Fp8Linear
from engine.kernels.int4 import Int4Linear
from engine.kernels.int8 import Int8ExactFp32Linear, Int8OneDnnLinear
from engine.kernels.linear import Fp32Linear

Kernel = Callable[[Tensor, Tensor | None], Linear]
INTEGER: dict[str, Kernel] = {
    "int8 exact": Int8ExactFp32Linear,
    "int8 oneDNN": Int8OneDnnLinear,
    "int4/32": partial(Int4Linear, group=32),
    "int4/64": partial(Int4Linear, group=64),
    "int4/128": partial(Int4Linear, group=128),
}
ALL: dict[str, Kernel] = {
    "fp32": Fp32Linear,
    "bf16": Bf16NativeLinear,
    "bf16 upcast": Bf16UpcastLinear,
    "fp8": Fp8Linear,
    **INTEGER,
}
WORST = {"fp32": 1e-6, "bf16": 0.01, "bf16 upcast": 0.004, "fp8": 0.06, "int8": 0.02, "int4": 0.15}
ROWS, COLUMNS = 75, 160


def random(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@cache
def layer(name: str) -> Linear:
    return ALL[name](random(1, ROWS, COLUMNS), random(2, ROWS))


@pytest.mark.hazard("batch-numerics")
@pytest.mark.parametrize("name", INTEGER)
@settings(deadline=None, max_examples=25)
@given(size=st.integers(1, 64), seed=st.integers(0, 2**31), scale=st.floats(1e-3, 1e3))
def test_a_row_has_the_same_bits_alone_and_in_any_batch(
    name: str, size: int, seed: int, scale: float
) -> None:
    x = random(seed, size, COLUMNS)
    x[1:] *= scale
    x[:, seed % COLUMNS] *= 50.0
    together = layer(name)(x)
    for row in (0, size // 2, size - 1):
        assert torch.equal(layer(name)(x[row : row + 1])[0], together[row])


@pytest.mark.hazard("batch-numerics")
@pytest.mark.parametrize("name", INTEGER)
def test_every_batch_size_gives_the_same_rows(name: str) -> None:
    x = random(3, 64, COLUMNS)
    together = layer(name)(x)
    for size in range(1, 65):
        assert torch.equal(layer(name)(x[:size]), together[:size])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(75, 160), (1, 32), (33, 96), (16, 31), (130, 200)])
def test_any_size_is_close_to_float32(name: str, shape: tuple[int, int]) -> None:
    weight, bias, x = random(4, *shape), random(5, shape[0]), random(6, 9, shape[1])
    exact, found = x @ weight.t() + bias, ALL[name](weight, bias)(x)
    assert found.shape == exact.shape
    assert found.dtype == torch.float32
    worst = WORST.get(name) or WORST[name[:4]]
    assert (found - exact).norm() <= worst * exact.norm()


@pytest.mark.parametrize("name", ALL)
def test_a_bias_is_added_unrounded_and_never_changed(name: str) -> None:
    weight, bias, x = random(7, 32, 64), random(8, 32), random(9, 3, 64)
    kept = bias.clone()
    with_bias, without = ALL[name](weight, bias), ALL[name](weight, None)
    assert torch.allclose(with_bias(x), without(x) + kept, atol=1e-5)
    assert torch.equal(with_bias(x), with_bias(x))
    assert torch.equal(bias, kept)
    assert with_bias.nbytes == without.nbytes + bias.nbytes


@pytest.mark.parametrize("name", ALL)
def test_zeros_give_the_bias_and_nothing_else(name: str) -> None:
    weight, bias = random(10, 32, 64), random(11, 32)
    weight[5] = 0.0
    linear = ALL[name](weight, bias)
    x = random(12, 3, 64)
    x[1] = 0.0
    result = linear(x)
    assert torch.equal(result[1], bias)
    assert torch.equal(result[:, 5], bias[5].expand(3))


@pytest.mark.hazard("not-a-number")
@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ALL)
def test_a_token_that_is_not_finite_spoils_itself_alone(name: str, poison: float) -> None:
    linear = ALL[name](random(13, 32, 64), None)
    x = random(14, 6, 64)
    clean = linear(x)
    x[2, 5] = poison
    result = linear(x)
    assert not result[2].isfinite().any()
    others = [0, 1, 3, 4, 5]
    assert torch.equal(result[others], clean[others])


@pytest.mark.parametrize("group", [32, 64, 128])
def test_int4_weights_take_half_a_byte_and_a_scale_and_centre_a_group(group: int) -> None:
    linear = Int4Linear(random(15, 64, 256), group=group)
    assert linear.nbytes == 64 * 256 // 2 + 64 * 256 // group * 4


def test_weights_that_came_from_four_bits_are_found_again() -> None:
    codes = torch.randint(0, 16, (32, 64), generator=torch.Generator().manual_seed(16)).float()
    codes[:, ::32], codes[:, 1::32] = 0.0, 15.0
    weight = codes * 0.25 - 1.5
    found = Int4Linear(weight)(torch.eye(64))
    assert torch.equal(found, weight.t())
