"""Whole decoder layers in the engine's own kernels compute what torch computes."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.config import BLOCK_SIZE, Dtype, EngineConfig, KvDtype
from engine.models import Decoder
from engine.models.whole import NativeLayer
from engine.runner.batch import BatchRow, build_batch
from tests.engine.hf_models import write_hf_model
from tests.engine.local_runner import load_alone
from tests.engine.native import kernels, torch_alone
from tests.engine.parity import all_logits, random_prompts

LENGTHS = (1, 5, 16, 33, 70, 130)
KINDS = ("llama", "qwen2", "qwen3", "mistral", "gemma3", "mixtral", "deepseek_v3")


@pytest.fixture(autouse=True)
def compiled() -> None:
    kernels()


def pair(
    folder: Path, kind: str, dtype: Dtype = "int8", kv: KvDtype = "fp32"
) -> tuple[Decoder, Decoder]:
    """The same model with the kernels, and with torch alone."""
    write_hf_model(folder, kind)
    config = EngineConfig(dtype=dtype, kv_dtype=kv, kv_cache_tokens=1024)
    with_kernels = load_alone(folder, config)
    with torch_alone():
        return with_kernels, load_alone(folder, config)


def close(ours: list[Tensor], theirs: list[Tensor], worst: float) -> bool:
    """Rounding moves a code here and there by one, which int8 makes visible."""
    far = [float((a - b).abs().max() / b.std()) for a, b in zip(ours, theirs, strict=True)]
    return max(far) < worst


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_gets_the_same_logits(kind: str, tmp_path: Path) -> None:
    ours, theirs = pair(tmp_path, kind)
    assert any(isinstance(layer, NativeLayer) for layer in ours.layers) or kind == "deepseek_v3"
    assert not any(isinstance(layer, NativeLayer) for layer in theirs.layers)
    prompts = random_prompts(LENGTHS)
    assert close(all_logits(ours, prompts), all_logits(theirs, prompts), 0.35)


@pytest.mark.parametrize(
    ("dtype", "kv"), [("int8", "bf16"), ("int8", "int8"), ("int4", "fp32"), ("int8", "fp8")]
)
def test_every_number_type_gets_the_same_logits(dtype: Dtype, kv: KvDtype, tmp_path: Path) -> None:
    ours, theirs = pair(tmp_path, "qwen3", dtype, kv)
    prompts = random_prompts(LENGTHS)
    assert close(all_logits(ours, prompts), all_logits(theirs, prompts), 0.35)


def hidden(decoder: Decoder, rows: list[BatchRow]) -> Tensor:
    """Of the rows' tokens, row after row."""
    batch = build_batch(rows, decoder.reach)
    states = decoder.hidden(batch.inputs)
    assert states is not None
    return torch.cat(
        [states[at : at + len(row.tokens)] for at, row in zip(batch.firsts, rows, strict=True)]
    )


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
@pytest.mark.parametrize("kv", ["fp32", "bf16", "int8"])
def test_a_prompt_is_the_same_to_the_last_bit_alone_in_pieces_and_in_a_batch(
    kind: str, kv: KvDtype, tmp_path: Path
) -> None:
    decoder, _ = pair(tmp_path, kind, kv=kv)
    (prompt,), others = random_prompts([150]), random_prompts([40, 90, 1], seed=1)
    blocks = list(range(-(-len(prompt) // BLOCK_SIZE)))
    whole = hidden(decoder, [BatchRow(prompt, 0, blocks, True)])

    free = iter(range(len(blocks), decoder.cache.num_blocks))
    beside = [
        BatchRow(other, 0, [next(free) for _ in range(-(-len(other) // BLOCK_SIZE))], True)
        for other in others
    ]
    together = hidden(decoder, [BatchRow(prompt, 0, blocks, True), *beside])
    assert torch.equal(together[: len(prompt)], whole)

    edges = [0, 1, 2, 50, 66, 149, 150]
    pieces = [hidden(decoder, [BatchRow(prompt[a:b], a, blocks, True)]) for a, b in pairwise(edges)]
    assert torch.equal(torch.cat(pieces), whole)


def test_the_number_of_threads_changes_no_bit(tmp_path: Path) -> None:
    decoder, _ = pair(tmp_path, "llama")
    rows = [
        BatchRow(prompt, 0, [10 * place + at for at in range(10)], True)
        for place, prompt in enumerate(random_prompts([150, 3, 40]))
    ]
    one = hidden(decoder, rows)
    try:
        kernels().threads(3)
        assert torch.equal(hidden(decoder, rows), one)
    finally:
        kernels().threads(1)


def test_a_cache_that_was_moved_is_found_again(tmp_path: Path) -> None:
    decoder, _ = pair(tmp_path, "llama")
    row = [BatchRow(random_prompts([40])[0], 0, [0, 1, 2], True)]
    before = hidden(decoder, row)
    resized = decoder.resized(7)
    assert torch.equal(hidden(resized, row), before)


def test_a_poisoned_value_is_found_and_spoils_no_other(tmp_path: Path) -> None:
    decoder, _ = pair(tmp_path, "llama")
    rows = [
        BatchRow(prompt, 0, [5 * place, 5 * place + 1], True)
        for place, prompt in enumerate(random_prompts([20, 20]))
    ]
    clean = hidden(decoder, rows)
    decoder.embedding.table[rows[0].tokens[4]] = float("nan")  # type: ignore[union-attr]
    if rows[0].tokens[4] in rows[1].tokens:
        pytest.skip("the other prompt has the same token")
    dirty = hidden(decoder, rows)
    assert not dirty[4:20].isfinite().any(dim=1).any()
    assert torch.equal(dirty[20:], clean[20:])
