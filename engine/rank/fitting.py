"""What a rank that holds its weights has left for keys and values."""

import msgspec

from engine.config import BLOCK_SIZE, EngineConfig
from engine.layers import KVCache
from engine.model_config import ModelConfig
from engine.planner import PROCESS_BYTES, rank_memory
from engine.protocol.launch import ProcessSpec
from engine.protocol.steps import Loaded
from engine.rank.memory import available_bytes, machine_id

UNKNOWN = 1 << 62
"""Where the system does not tell what is free, the settings alone decide."""


def measure(spec: ProcessSpec, model: ModelConfig, rank: int, cache: KVCache) -> Loaded:
    """Memory of this machine now; the cache's own pages are untouched and so not yet taken."""
    available = available_bytes()
    workspace, gathered = _workspace(model, spec.config, rank)
    return Loaded(
        machine=machine_id(),
        available_bytes=UNKNOWN if available is None else available - spec.memory_floor,
        block_bytes=cache.nbytes // (cache.num_blocks + 1) + gathered,
        workspace_bytes=workspace,
    )


def _workspace(model: ModelConfig, config: EngineConfig, rank: int) -> tuple[int, int]:
    """Bytes of the largest step beside what it gathers from the cache, and of that a block."""

    def need(blocks: int) -> int:
        sized = msgspec.structs.replace(config, kv_cache_tokens=blocks * BLOCK_SIZE)
        return rank_memory(model, sized, rank).workspace - PROCESS_BYTES

    gathered = need(3) - need(2)
    return need(2) - 2 * gathered, gathered
