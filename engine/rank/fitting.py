"""What a rank that holds its weights has left for keys and values."""

import msgspec
import torch

from engine.config import BLOCK_SIZE, EngineConfig
from engine.layers import KVCache
from engine.model_config import ModelConfig
from engine.planner import PROCESS_BYTES, rank_memory
from engine.protocol.launch import ProcessSpec
from engine.protocol.steps import Loaded
from engine.rank.memory import available_bytes, machine_id

GPU_RESERVE = 1 << 30
"""What CUDA libraries and captured steps take besides."""
UNKNOWN = 1 << 62
"""Where the system does not tell what is free, the settings alone decide."""


def measure(spec: ProcessSpec, model: ModelConfig, rank: int, cache: KVCache) -> Loaded:
    """Memory of this machine, or of this GPU, now; the cache's own pages are hardly taken yet."""
    machine, available = room(spec.memory_floor, cache.device)
    workspace, gathered = _workspace(model, spec.config, rank)
    return Loaded(
        machine=machine,
        available_bytes=UNKNOWN if available is None else available,
        block_bytes=cache.nbytes // (cache.num_blocks + 1) + gathered,
        workspace_bytes=workspace,
    )


def room(memory_floor: int, device: torch.device) -> tuple[str, int | None]:
    """Whose memory it is, and how much of it may be taken; None where nobody says."""
    if device.type == "cpu":
        available = available_bytes()
        return machine_id(), None if available is None else available - memory_floor
    torch.cuda.empty_cache()  # What loading took and gave back is torch's until then.
    free, _total = torch.cuda.mem_get_info(device)
    identity = getattr(torch.cuda.get_device_properties(device), "uuid", device.index)
    return f"{machine_id()} {identity}", free - GPU_RESERVE


def _workspace(model: ModelConfig, config: EngineConfig, rank: int) -> tuple[int, int]:
    """Bytes of the largest step beside what it gathers from the cache, and of that a block."""

    def need(blocks: int) -> int:
        sized = msgspec.structs.replace(config, kv_cache_tokens=blocks * BLOCK_SIZE)
        return rank_memory(model, sized, rank).workspace - PROCESS_BYTES

    gathered = need(3) - need(2)
    return need(2) - 2 * gathered, gathered
