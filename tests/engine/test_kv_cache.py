"""Keys and values come back as well as their number type allows, and from nowhere else."""

import pytest
import torch
from torch import Tensor

from engine.config import BLOCK_SIZE, KV_DTYPES, KvDtype
from engine.layers import KVCache

HEADS, KEY_DIM, VALUE_DIM, BLOCKS = 3, 32, 16, 6
TABLES = torch.tensor([4, 1])
SLOTS = torch.cat((torch.arange(4 * BLOCK_SIZE, 5 * BLOCK_SIZE), torch.arange(16, 19)))
"""The whole of block 4 and three tokens of block 1."""
BYTES_PER_VECTOR = {"fp32": 4 * 32, "bf16": 2 * 32, "fp8": 32 + 4, "int8": 32 + 4}


def filled(dtype: KvDtype, keys: Tensor, values: Tensor) -> KVCache:
    cache = KVCache(2, BLOCKS, HEADS, KEY_DIM, VALUE_DIM, dtype)
    cache.write(1, SLOTS, keys, values)
    return cache


def random(seed: int, dim: int) -> Tensor:
    return torch.randn(len(SLOTS), HEADS, dim, generator=torch.Generator().manual_seed(seed))


def read(cache: KVCache, layer: int = 1) -> tuple[Tensor, Tensor]:
    """Keys and values of the written slots, (tokens, heads, dim)."""
    keys, values = cache.read(layer, TABLES, 1)
    assert values is not None
    assert keys.dtype == values.dtype == torch.float32
    return keys[0].transpose(0, 1)[: len(SLOTS)], values[0].transpose(0, 1)[: len(SLOTS)]


@pytest.mark.parametrize(
    ("dtype", "worst"), [("fp32", 0.0), ("bf16", 0.004), ("int8", 0.02), ("fp8", 0.07)]
)
def test_what_was_written_is_read(dtype: KvDtype, worst: float) -> None:
    keys, values = random(1, KEY_DIM), random(2, VALUE_DIM)
    cache = filled(dtype, keys, values)
    for wanted, found in zip((keys, values), read(cache), strict=True):
        assert (found - wanted).abs().max() <= worst * wanted.abs().amax()
        assert (found - wanted).norm() <= worst * wanted.norm()
    for other in read(cache, layer=0):
        assert not other.any(), "another layer's stay as they were"


@pytest.mark.parametrize("dtype", KV_DTYPES)
def test_a_token_is_stored_alike_alone_and_in_a_batch(dtype: KvDtype) -> None:
    keys, values = random(3, KEY_DIM), random(4, VALUE_DIM)
    cache = KVCache(2, BLOCKS, HEADS, KEY_DIM, VALUE_DIM, dtype)
    for token in range(len(SLOTS)):
        one = slice(token, token + 1)
        cache.write(1, SLOTS[one], keys[one], values[one])
    for alone, together in zip(read(cache), read(filled(dtype, keys, values)), strict=True):
        assert torch.equal(alone, together)


@pytest.mark.hazard("not-a-number")
@pytest.mark.parametrize("poison", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", KV_DTYPES)
def test_what_is_not_finite_never_becomes_a_number(dtype: KvDtype, poison: float) -> None:
    keys, values = random(5, KEY_DIM), random(6, VALUE_DIM)
    clean, _values = read(filled(dtype, keys, values))
    keys[7, 1, 3] = poison
    found, _values = read(filled(dtype, keys, values))
    assert not found[7, 1, 3].isfinite()
    found[7, 1], clean[7, 1] = 0.0, 0.0
    assert torch.equal(found, clean), "no other token or head is touched"


@pytest.mark.parametrize("dtype", KV_DTYPES)
def test_large_and_small_tokens_keep_their_size(dtype: KvDtype) -> None:
    keys = random(7, KEY_DIM)
    keys[3] *= 1e6
    keys[4] *= 1e-6
    found, _values = read(filled(dtype, keys, random(8, VALUE_DIM)))
    for token in (3, 4):
        assert (found[token] - keys[token]).norm() <= 0.07 * keys[token].norm()


@pytest.mark.parametrize("dtype", KV_DTYPES)
def test_cleared_blocks_are_zero_and_the_padding_block_always_is(dtype: KvDtype) -> None:
    poison = torch.full((len(SLOTS), HEADS, KEY_DIM), float("nan"))
    cache = filled(dtype, poison, random(8, VALUE_DIM))
    padding = torch.tensor([cache.padding_block])
    cache.clear([4])
    for index in (torch.tensor([4]), padding):
        keys, values = cache.read(1, index, 1)
        assert values is not None
        assert not keys.any()
        assert not values.any()
    assert cache.read(1, torch.tensor([1]), 1)[0].isnan().any(), "block 1 was not cleared"


@pytest.mark.parametrize("dtype", KV_DTYPES)
def test_bytes_are_those_of_every_block(dtype: KvDtype) -> None:
    cache = KVCache(2, BLOCKS, HEADS, 32, 32, dtype)
    vectors = 2 * 2 * (BLOCKS + 1) * BLOCK_SIZE * HEADS
    assert cache.nbytes == vectors * BYTES_PER_VECTOR[dtype]


@pytest.mark.parametrize("dtype", KV_DTYPES)
def test_latents_have_no_values(dtype: KvDtype) -> None:
    cache = KVCache(1, BLOCKS, 1, 40, 0, dtype)
    entries = torch.ones(len(SLOTS), 1, 40)
    cache.write(0, SLOTS, entries, None)
    keys, values = cache.read(0, TABLES, 1)
    assert values is None
    assert torch.equal(keys[:, :, : len(SLOTS)], entries.transpose(0, 1).unsqueeze(0))
