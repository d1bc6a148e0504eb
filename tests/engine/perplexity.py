"""How well the bundled model reads a public-domain text: the measure of every number type.

`python -m tests.engine.perplexity int4 int8:fp8 int4/64` prints it for weight types, each with a
type for keys and values after a colon and an int4 group after a slash.

tests/data/public_domain.txt holds passages of Lincoln (1863), Carroll (1865), Austen (1813),
Melville (1851), Dickens (1859), Darwin (1859), Conan Doyle (1891) and of two American
founding documents.
"""

import math
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import torch
from torch.nn.functional import cross_entropy

from engine.bundled import bundled_model
from engine.config import BLOCK_SIZE, EngineConfig
from engine.models import Decoder
from engine.runner.batch import BatchRow, build_batch
from tests.engine.bundled import bundled_tokenizer
from tests.engine.local_runner import load_alone

TEXT = Path(__file__).parent.parent / "data" / "public_domain.txt"
CAPACITY = 4096
CHUNK = 256


@cache
def text_ids() -> list[int]:
    """About 1,900 tokens."""
    ids = bundled_tokenizer().encode(TEXT.read_text())
    assert 1500 < len(ids) < CAPACITY
    return ids


def perplexity(config: EngineConfig) -> float:
    """Of the bundled model on the text, read in chunks so that later ones read the cache."""
    return decoder_perplexity(
        load_alone(bundled_model(), msgspec.structs.replace(config, kv_cache_tokens=CAPACITY))
    )


@cache
def fp32_perplexity() -> float:
    return perplexity(EngineConfig())


def decoder_perplexity(decoder: Decoder) -> float:
    ids = text_ids()
    losses = [_loss(decoder, ids, start) for start in range(0, len(ids) - 1, CHUNK)]
    return math.exp(sum(losses) / (len(ids) - 1))


def _loss(decoder: Decoder, ids: list[int], start: int) -> float:
    """Sum of what each token of the chunk failed to foresee of the next one."""
    following = torch.tensor(ids[start + 1 : start + CHUNK + 1])
    blocks = list(range(CAPACITY // BLOCK_SIZE))
    row = BatchRow(ids[start : start + len(following)], start, blocks, sample=True)
    inputs = build_batch([row], decoder.reach).inputs
    everything = replace(inputs, sampled=torch.arange(len(following)))
    logits = decoder(everything)
    assert logits is not None
    return float(cross_entropy(logits, following, reduction="sum"))


def main() -> None:
    for choice in sys.argv[1:]:
        weights, _, keys = choice.partition(":")
        dtype, _, group = weights.partition("/")
        settings = {"dtype": dtype, "kv_dtype": keys or "fp32", "int4_group": int(group or 32)}
        config = msgspec.convert(settings, EngineConfig)
        began = time.perf_counter()
        value = perplexity(config)
        print(f"{choice}: {value:.4f} in {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
