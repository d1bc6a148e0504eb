"""What only a GPU can show: that it computes what the processor does, captured or not."""

from pathlib import Path

import pytest
import torch

from engine.config import Dtype, EngineConfig, KvDtype
from engine.device import CPU, choose_device
from engine.errors import ConfigError
from engine.kernels.cuda import FP8_FROM, CudaFp8Linear, CudaInt8Linear
from engine.kernels.int8 import Int8ExactFp32Linear
from engine.models import Decoder
from engine.runner.decoding import decode_graphs
from tests.engine.hf_models import write_hf_model
from tests.engine.local_runner import LocalRunner, load_alone
from tests.engine.parity import all_logits, random_prompts
from tests.engine.test_decode_graphs import filled, step_by_step

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs an NVIDIA GPU and a torch built with CUDA"
)
KINDS = ("llama", "qwen3", "gemma3")
LENGTHS = (1, 5, 33, 70)


def on_gpu(dtype: Dtype = "fp32", kv_dtype: KvDtype = "fp32") -> EngineConfig:
    return EngineConfig(device="cuda", dtype=dtype, kv_dtype=kv_dtype, kv_cache_tokens=1024)


def close(found: Decoder, expected: Decoder, tolerance: float) -> None:
    prompts = random_prompts(LENGTHS)
    pairs = zip(all_logits(found, prompts), all_logits(expected, prompts), strict=True)
    for there, here in pairs:
        assert there.device.type == "cuda"
        error = (there.to(CPU) - here).norm() / here.norm()
        assert float(error) < tolerance


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_the_processors(tmp_path: Path, kind: str) -> None:
    write_hf_model(tmp_path, kind, seed=0)
    close(
        load_alone(tmp_path, on_gpu()),
        load_alone(tmp_path, EngineConfig(kv_cache_tokens=1024)),
        1e-4,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("dtype", "kv_dtype", "tolerance"),
    [("bf16", "bf16", 0.05), ("int8", "int8", 0.1), ("fp8", "fp8", 0.2)],
)
def test_number_types_stay_near_fp32(
    tmp_path: Path, kind: str, dtype: Dtype, kv_dtype: KvDtype, tolerance: float
) -> None:
    if dtype == "fp8" and torch.cuda.get_device_capability() < FP8_FROM:
        pytest.skip("this GPU has no fp8")
    write_hf_model(tmp_path, kind, seed=0)
    close(
        load_alone(tmp_path, on_gpu(dtype, kv_dtype)),
        load_alone(tmp_path, EngineConfig(kv_cache_tokens=1024)),
        tolerance,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [[5], [40, 3, 17], [100, 90, 1, 30, 64]])
def test_a_played_capture_gives_what_its_step_gives(
    tmp_path: Path, kind: str, lengths: list[int]
) -> None:
    write_hf_model(tmp_path, kind, seed=0)
    decoder = load_alone(tmp_path, on_gpu())
    graphs = decode_graphs(decoder, 8)
    assert graphs is not None
    rows = filled(decoder, lengths)
    for chosen in (rows, rows[::-1], rows):
        expected = step_by_step(decoder, chosen).clone()
        found = graphs.hidden(chosen)
        assert found is not None
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert len(graphs) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_answers_are_the_processors(tmp_path: Path, kind: str) -> None:
    write_hf_model(tmp_path, kind, seed=0)
    prompts = random_prompts(LENGTHS)
    here = LocalRunner(tmp_path, EngineConfig(kv_cache_tokens=1024)).generate(prompts, 12)
    assert LocalRunner(tmp_path, on_gpu()).generate(prompts, 12) == here


@pytest.mark.parametrize("tokens", [1, 16, 17, 40])
@pytest.mark.parametrize("shape", [(48, 64), (50, 72)])
def test_int8_takes_every_shape(tokens: int, shape: tuple[int, int]) -> None:
    weight, x = torch.randn(shape), torch.randn(tokens, shape[1])
    found = CudaInt8Linear(weight.cuda())(x.cuda())
    # Codes may differ by one where a GPU divides otherwise.
    torch.testing.assert_close(found.cpu(), Int8ExactFp32Linear(weight)(x), rtol=1e-2, atol=5e-2)


@pytest.mark.parametrize("tokens", [1, 3, 40])
def test_fp8_is_near_fp32(tokens: int) -> None:
    if torch.cuda.get_device_capability() < FP8_FROM:
        pytest.skip("this GPU has no fp8")
    weight, x = torch.randn(50, 72), torch.randn(tokens, 72)
    found, exact = CudaFp8Linear(weight.cuda())(x.cuda()).cpu(), x @ weight.t()
    assert float((found - exact).norm() / exact.norm()) < 0.08


def test_a_rank_number_without_a_gpu_is_refused() -> None:
    with pytest.raises(ConfigError, match="GPUs for ranks"):
        choose_device(on_gpu(), torch.cuda.device_count())
