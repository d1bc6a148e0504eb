"""A Hugging Face folder becomes a Mixtral folder that transformers and the engine read alike."""

import json
from pathlib import Path

import msgspec
import pytest
import torch
import transformers

from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig
from engine.errors import EngineError
from engine.tools.upcycle import upcycle
from tests.engine.hf_models import write_hf_model
from tests.engine.local_runner import LocalRunner

PROMPTS = [[5, 80, 33, 120, 7, 61], list(range(20, 60)), [9]]
CONFIG = EngineConfig(kv_cache_tokens=1024, token_budget=32)


@pytest.fixture(scope="module", params=["llama-tied", "llama-llama3", "mistral"])
def dense(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dense") / "model"
    write_hf_model(folder, request.param)
    return folder


@pytest.fixture(scope="module")
def mixture(dense: Path) -> Path:
    target = dense.with_name("mixture")
    upcycle(dense, target, experts=4, per_token=2)
    return target


def test_a_mixture_answers_as_the_dense_model_does(dense: Path, mixture: Path) -> None:
    answers = LocalRunner(mixture, CONFIG).generate(PROMPTS, 32)
    assert answers == LocalRunner(dense, CONFIG).generate(PROMPTS, 32)


@torch.inference_mode()
def test_transformers_reads_it_as_a_mixtral(dense: Path, mixture: Path) -> None:
    new = transformers.AutoModelForCausalLM.from_pretrained(mixture)
    old = transformers.AutoModelForCausalLM.from_pretrained(dense)
    assert isinstance(new, transformers.MixtralForCausalLM)
    ids = torch.tensor([PROMPTS[1]])
    torch.testing.assert_close(new(ids).logits, old(ids).logits, rtol=0, atol=1e-4)


def test_tokenizer_and_template_come_along(dense: Path, mixture: Path) -> None:
    assert open_checkpoint(mixture).tokenizer == open_checkpoint(dense).tokenizer


@pytest.mark.parametrize(
    ("name", "omitted"),
    [
        ("llama-tied", ["rope_parameters", "rms_norm_eps", "num_key_value_heads"]),
        ("llama-yarn", ["rms_norm_eps"]),
        ("mistral", ["rope_parameters", "rms_norm_eps", "sliding_window"]),
    ],
)
def test_settings_left_out_mean_what_they_meant(
    tmp_path: Path, name: str, omitted: list[str]
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    write_hf_model(old, name, num_key_value_heads=2 if name == "mistral" else 4)
    settings = json.loads((old / "config.json").read_text())
    for key in omitted:
        del settings[key]
    (old / "config.json").write_text(json.dumps(settings))
    upcycle(old, new, 4)
    dense, mixture = open_checkpoint(old).config, open_checkpoint(new).config
    assert msgspec.structs.replace(mixture, architecture=dense.architecture, experts=None) == dense


def test_what_mixtral_has_no_room_for_is_refused(tmp_path: Path) -> None:
    write_hf_model(tmp_path / "dense", "llama")
    with pytest.raises(EngineError, match="cannot have mlp_bias = True"):
        upcycle(tmp_path / "dense", tmp_path / "new", 4)
    assert not (tmp_path / "new").exists()


def test_another_family_is_refused(tmp_path: Path) -> None:
    write_hf_model(tmp_path / "dense", "qwen3")
    with pytest.raises(EngineError, match="only Llama and Mistral models"):
        upcycle(tmp_path / "dense", tmp_path / "new", 4)


def test_quantised_weights_are_refused(dense: Path, tmp_path: Path) -> None:
    config = json.loads((dense / "config.json").read_text())
    (tmp_path / "dense").mkdir()
    changed = config | {"quantization_config": {"quant_method": "awq"}}
    (tmp_path / "dense" / "config.json").write_text(json.dumps(changed))
    with pytest.raises(EngineError, match="weights are quantised"):
        upcycle(tmp_path / "dense", tmp_path / "new", 4)
