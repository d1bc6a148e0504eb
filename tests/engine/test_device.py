"""The device cuda without a GPU: what is refused and in which words, and that with weights and
cache on another device everything a step needs goes there. The device `meta` has no numbers, and
refuses to be mixed with the processor as a GPU does."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
from torch._C import _distributed_c10d as c10d

from engine import device as devices
from engine.abilities import check_abilities
from engine.checkpoint import open_checkpoint
from engine.config import Dtype, EngineConfig, KvDtype
from engine.device import CPU, check_device, choose_device, upload
from engine.errors import ConfigError, RankError
from engine.kernels import choose_linear
from engine.kernels.cuda import CudaFp8Linear, CudaInt8Linear, choose_cuda
from engine.kernels.fp8 import Fp8Linear
from engine.kernels.int8 import Int8ExactFp32Linear
from engine.models import Decoder, load_decoder
from engine.parallel import Alone, Mesh
from engine.parallel.nccl import open_nccl
from engine.rank import fitting
from engine.runner.batch import BatchRow, build_batch
from engine.shards import rank_share
from tests.engine.hf_models import write_hf_model

META = torch.device("meta")
CUDA = EngineConfig(device="cuda")
HOPPER = (9, 0)


def test_a_torch_without_cuda_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    with pytest.raises(ConfigError, match=r"built with CUDA.*pytorch\.org, or choose the device"):
        choose_linear(CUDA)


def test_the_refusal_can_be_sent_to_the_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    with pytest.raises(ConfigError) as refused:
        check_device(CUDA)
    assert torch.__version__.encode() in msgspec.msgpack.encode(refused.value.said)


def test_a_box_without_a_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"torch finds none on this node; check .*nvidia-smi"):
        check_device(CUDA)


def test_the_processor_asks_nothing_of_cuda() -> None:
    assert choose_device(EngineConfig(), 5) == CPU


def test_each_rank_of_a_box_takes_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[torch.device] = []
    monkeypatch.setattr(devices, "check_device", lambda config: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    assert [choose_device(CUDA, place).index for place in (0, 1)] == [0, 1]
    assert len(taken) == 2
    with pytest.raises(ConfigError, match=r"has 2 GPUs for ranks, .* puts rank number 3 on it"):
        choose_device(CUDA, 2)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: EngineConfig(device="tpu"), "device must be one of cpu, cuda"),  # type: ignore[arg-type]  # on purpose
        (lambda: EngineConfig(transport="nccl"), "nccl joins GPUs; choose the device cuda"),
        (lambda: EngineConfig(device="cuda", dtype="int4"), "choose int8 or fp8"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    wrong: Callable[[], EngineConfig], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        wrong()


def test_on_a_gpu_the_processor_need_not_know_fp8() -> None:
    check_abilities(EngineConfig(device="cuda", dtype="fp8"), frozenset())


@pytest.mark.parametrize(
    ("capability", "missing"),
    [
        ((7, 0), {"bf16", "int8", "fp8"}),
        ((7, 5), {"bf16", "fp8"}),
        ((8, 0), {"fp8"}),
        (HOPPER, set()),
    ],
)
def test_a_gpu_has_the_kernels_of_its_generation(
    capability: tuple[int, int], missing: set[str]
) -> None:
    dtypes: list[Dtype] = ["fp32", "bf16", "int8", "fp8"]
    for dtype in dtypes:
        if dtype in missing:
            with pytest.raises(ConfigError, match=rf"no kernel for {dtype} weights"):
                choose_cuda(dtype, capability)
        else:
            assert choose_cuda(dtype, capability)[0] == f"{dtype} CUDA"


@pytest.mark.parametrize("shape", [(48, 64), (50, 72), (7, 24)])
@pytest.mark.parametrize("tokens", [1, 17, 40])
def test_padded_int8_gives_the_same_bits(shape: tuple[int, int], tokens: int) -> None:
    weight, x = torch.randn(shape), torch.randn(tokens, shape[1])
    bias = torch.randn(shape[0])
    padded, exact = CudaInt8Linear(weight, bias), Int8ExactFp32Linear(weight, bias)
    assert torch.equal(padded(x), exact(x))


def test_fp8_rounds_its_sums_to_bf16() -> None:
    weight, x = torch.randn(24, 40), torch.randn(3, 40)
    rounded, exact = CudaFp8Linear(weight)(x), Fp8Linear(weight)(x)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded, exact, rtol=1e-2, atol=1e-2)


def test_what_is_uploaded_keeps_its_shapes() -> None:
    host = [torch.arange(4), torch.arange(6).view(2, 3)]
    assert [a is b for a, b in zip(upload(host, CPU), host, strict=True)] == [True, True]
    there = upload(host, META)
    assert [(part.shape, part.device, part.dtype) for part in there] == [
        (part.shape, META, torch.int64) for part in host
    ]


def elsewhere(kind: str, folder: Path, dtype: Dtype, kv_dtype: KvDtype) -> Decoder:
    write_hf_model(folder, kind, seed=0)
    checkpoint = open_checkpoint(folder)
    config = EngineConfig(kv_cache_tokens=256, kv_dtype=kv_dtype)
    share = rank_share(checkpoint.config, config.plan, 0)
    mesh = Mesh(Alone(), Alone(), "none")
    _name, linear = choose_cuda(dtype, HOPPER)
    return load_decoder(checkpoint, config, share, linear, mesh, lambda *_news: None, META)


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma3"])
@pytest.mark.parametrize(
    ("dtype", "kv_dtype"), [("fp32", "fp32"), ("bf16", "bf16"), ("int8", "int8"), ("fp8", "fp8")]
)
def test_a_step_is_computed_where_the_weights_are(
    tmp_path: Path, kind: str, dtype: Dtype, kv_dtype: KvDtype
) -> None:
    decoder = elsewhere(kind, tmp_path, dtype, kv_dtype)
    decoder.cache.clear([0, 3])
    rows = [BatchRow([5], 20, [0, 1], True), BatchRow([4, 5, 6], 0, [3], True)]
    hidden = decoder.hidden(build_batch(rows, decoder.reach).inputs)
    assert hidden is not None
    assert hidden.device == META
    logits = decoder.logits(hidden, torch.tensor([0]))
    assert logits is not None
    assert logits.device == META
    assert decoder.resized(9).cache.stored(0)[0][0].device == META


def test_a_processors_kernels_are_not_used_elsewhere(tmp_path: Path) -> None:
    decoder = elsewhere("llama", tmp_path, "int8", "fp32")
    assert {type(layer).__name__ for layer in decoder.layers} == {"DecoderLayer"}


def test_room_is_what_the_gpu_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class Properties:
        uuid = "GPU-1"

    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (5 << 30, 80 << 30))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    machine, room = fitting.room(0, torch.device("cuda", 1))
    assert room == (5 << 30) - fitting.GPU_RESERVE
    assert machine.endswith("GPU-1")
    assert machine != fitting.room(0, CPU)[0]


def test_gpus_without_nccl_in_torch_name_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(c10d, "ProcessGroupNCCL", raising=False)
    with pytest.raises(RankError, match=r"built without NCCL.* or choose the transport tcp"):
        open_nccl(c10d.HashStore(), 0, 2, 1.0)
