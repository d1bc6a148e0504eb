"""int8 reads a public-domain text nearly as well as fp32.

tests/data/public_domain.txt holds passages of Lincoln (1863), Carroll (1865), Austen (1813),
Melville (1851), Dickens (1859), Darwin (1859), Conan Doyle (1891) and of two American
founding documents.
"""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.bundled import bundled_model
from engine.config import Dtype, EngineConfig
from engine.runner.batch import BatchRow, build_batch
from tests.engine.bundled import bundled_tokenizer
from tests.engine.local_runner import load_alone

TEXT = Path(__file__).parent.parent / "data" / "public_domain.txt"


def perplexity(dtype: Dtype, ids: list[int]) -> float:
    decoder = load_alone(bundled_model(), EngineConfig(dtype=dtype, kv_cache_tokens=4096))
    row = BatchRow(ids, 0, list(range(256)), sample=True)
    inputs = build_batch([row], kv_group_size=3, padding_block=256).inputs
    logits = decoder(replace(inputs, sampled=torch.arange(len(ids) - 1)))
    assert logits is not None
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]))
    return math.exp(float(loss))


@pytest.mark.model
def test_int8_perplexity_is_within_two_percent_of_fp32() -> None:
    ids = bundled_tokenizer().encode(TEXT.read_text())
    assert 1500 < len(ids) < 4096
    reference, quantised = perplexity("fp32", ids), perplexity("int8", ids)
    assert reference < 30
    assert abs(quantised / reference - 1) < 0.02, (reference, quantised)
