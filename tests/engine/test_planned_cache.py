"""The cache that a rank makes is as large as planned, for heads and for latents."""

import pytest

from engine.config import KV_DTYPES, EngineConfig, KvDtype, ParallelPlan
from engine.model_config import LatentAttention, ModelConfig, Rope
from engine.models.loading import make_cache
from engine.planner import rank_memory
from engine.shards import rank_shares

LATENT = LatentAttention(q_rank=None, kv_rank=20, nope_dim=8, rope_dim=4, value_dim=6)


def model(latent: LatentAttention | None) -> ModelConfig:
    return ModelConfig(
        architecture="any",
        hidden_size=32,
        intermediate_size=64,
        num_layers=3,
        num_heads=6,
        num_kv_heads=6 if latent else 3,
        head_dim=12,
        vocab_size=50,
        context_length=64,
        rope=Rope(theta=1e4, dimensions=4),
        rms_norm_eps=1e-5,
        tie_embeddings=True,
        latent=latent,
    )


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
@pytest.mark.parametrize("latent", [None, LATENT], ids=["heads", "latents"])
def test_every_rank_of_a_plan(latent: LatentAttention | None, kv_dtype: KvDtype) -> None:
    plan = ParallelPlan(tp=2, pp=2)
    config = EngineConfig(plan=plan, kv_dtype=kv_dtype, kv_cache_tokens=160)
    for rank, share in enumerate(rank_shares(model(latent), plan)):
        cache = make_cache(model(latent), config, share)
        assert cache.nbytes == rank_memory(model(latent), config, rank).kv
