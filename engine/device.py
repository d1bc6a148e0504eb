"""What a rank computes on: its processor, or one NVIDIA GPU.

Nothing here touches CUDA before `check_device` has found it: torch's wheels for processors lack it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.config import EngineConfig
from engine.errors import ConfigError
from engine.errors import gettext_noop as _

CPU = torch.device("cpu")


def check_device(config: EngineConfig) -> None:
    """Raise ConfigError, with the remedy, where `config` asks for a GPU and none can be used."""
    if config.device == "cpu":
        return
    if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]  # torch's gap
        raise ConfigError(
            _(
                "The device cuda needs a torch that was built with CUDA, and this node has "
                "torch %(version)s; install one from pytorch.org, or choose the device cpu."
            ),
            version=str(torch.__version__),
        )
    if not torch.cuda.is_available():
        raise ConfigError(
            _(
                "The device cuda needs an NVIDIA GPU, and torch finds none on this node; check "
                "the driver with nvidia-smi, or choose the device cpu."
            )
        )


def choose_device(config: EngineConfig, local_rank: int) -> torch.device:
    """The processor, or the GPU of this launch's `local_rank`-th rank on its box."""
    check_device(config)
    if config.device == "cpu":
        return CPU
    count = torch.cuda.device_count()
    if local_rank >= count:
        raise ConfigError(
            _(
                "This box has %(count)s GPUs for ranks, and the plan puts rank number %(number)s "
                "on it; spread the ranks over more boxes, or choose a smaller plan."
            ),
            count=count,
            number=local_rank + 1,
        )
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device


def capability() -> tuple[int, int]:
    """Of the GPU, as NVIDIA counts; a box is taken to hold GPUs of one kind."""
    return torch.cuda.get_device_capability()


def upload(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """int64 tensors of the host on `device`: themselves on the processor, else views of one that
    was copied at once from pinned memory, without waiting for what the GPU still computes."""
    if device.type == "cpu":
        return list(tensors)
    pinned = device.type == "cuda"
    sizes = [tensor.numel() for tensor in tensors]
    flat = torch.empty(sum(sizes), dtype=torch.int64, pin_memory=pinned)
    torch.cat([tensor.reshape(-1) for tensor in tensors], out=flat)
    there = flat.to(device, non_blocking=pinned)
    parts = zip(torch.split(there, sizes), tensors, strict=True)
    return [part.view(tensor.shape) for part, tensor in parts]
