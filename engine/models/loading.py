"""From a checkpoint to one rank's decoder."""

import torch

from engine.checkpoint import Checkpoint
from engine.checkpoint.tensors import rank_tensors
from engine.config import EngineConfig
from engine.device import CPU
from engine.kernels import LinearFactory, choose_head
from engine.layers import KVCache
from engine.loader import Progress, WeightSource, give_back
from engine.model_config import ModelConfig
from engine.models.blueprint import Blueprint
from engine.models.builder import build_decoder
from engine.models.decoder import Decoder
from engine.models.weights import RankWeights
from engine.parallel import Mesh
from engine.shards import RankShare


def load_decoder(
    checkpoint: Checkpoint,
    config: EngineConfig,
    share: RankShare,
    linear: LinearFactory,
    mesh: Mesh,
    progress: Progress,
    device: torch.device = CPU,
) -> Decoder:
    """Read and build one rank's share on `device`; raises CheckpointError."""
    model = checkpoint.config
    with WeightSource(checkpoint, rank_tensors(model, share), progress, device) as source:
        weights = RankWeights(source, checkpoint.layout, linear, choose_head(config))
        cache = make_cache(model, config, share, device)
        decoder = build_decoder(Blueprint(model, share, weights, cache, mesh), config)
        source.finish()
    give_back()
    return decoder


def make_cache(
    model: ModelConfig, config: EngineConfig, share: RankShare, device: torch.device = CPU
) -> KVCache:
    """Keys and values of this rank's layers, or their latents."""
    latent = model.latent
    return KVCache(
        share.layers.size,
        config.num_kv_blocks,
        share.kv_heads.size,
        key_dim=latent.cache_width if latent else model.head_dim,
        value_dim=0 if latent else model.head_dim,
        dtype=config.kv_dtype,
        device=device,
    )
