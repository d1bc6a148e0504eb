"""The bundled model as a mixture of four experts still writes the same text."""

import json
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.layers.experts import MixtureOfExperts
from engine.tools.upcycle import upcycle
from tests.engine.bundled import bundled_model
from tests.engine.local_runner import LocalRunner

GOLDEN = Path(__file__).parent.parent / "golden" / "greedy_fp32.json"
TOKENS = 32


@pytest.mark.model
def test_greedy_text_is_the_dense_models_through_the_real_router(tmp_path: Path) -> None:
    """The dense model's ids are transformers' own, see tests/golden/make_golden.py."""
    golden = json.loads(GOLDEN.read_text())[:4]
    upcycle(bundled_model(), tmp_path / "mixture.gguf", experts=4, per_token=2)
    runner = LocalRunner(tmp_path / "mixture.gguf", EngineConfig(kv_cache_tokens=1024))
    answers = runner.generate([entry["ids"] for entry in golden], TOKENS)
    assert answers == [entry["tokens"][:TOKENS] for entry in golden]
    for layer in runner.decoder.layers:
        assert isinstance(layer.mlp, MixtureOfExperts)
        assert (layer.mlp.tokens > 0).all(), "an expert that is never chosen is no test"
