"""Memory arithmetic: what each rank of a plan needs, and whether a node has it. Pure, no torch."""

import msgspec

from engine.config import BLOCK_SIZE, EngineConfig
from engine.model_config import ModelConfig
from engine.shards import RankShare, kv_bytes_per_token, layer_parameters, rank_share

FLOAT_BYTES = 4
PROCESS_BYTES = 256 * 1024**2
"""What a rank holds before it has loaded anything: Python and torch, measured on CPU wheels."""


class MemoryNeed(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes one rank needs; weights and KV are exact, the workspace is an upper estimate."""

    weights: int
    kv: int
    workspace: int
    """The process itself and the largest step's activations."""

    @property
    def total(self) -> int:
        return self.weights + self.kv + self.workspace


def rank_memory(
    model: ModelConfig, config: EngineConfig, rank: int, *, integer_dot_products: bool = False
) -> MemoryNeed:
    """What global rank `rank` needs; raises PlanError when the plan does not fit the model.

    `integer_dot_products`: whether its processor has AVX-512 VNNI or AMX. Without, int8 weights
    are kept as whole numbers in float32, for speed, and take no less room than fp32.
    """
    share = rank_share(model, config.plan, rank)
    quantized = config.dtype == "int8"
    linear_bytes = 1 if quantized and integer_dot_products else FLOAT_BYTES
    blocks = config.num_kv_blocks + 1
    return MemoryNeed(
        weights=_weight_bytes(model, share, quantized=quantized, linear_bytes=linear_bytes),
        kv=blocks * BLOCK_SIZE * kv_bytes_per_token(model, share, FLOAT_BYTES),
        workspace=PROCESS_BYTES + _activation_bytes(model, config, share),
    )


def _weight_bytes(
    model: ModelConfig, share: RankShare, *, quantized: bool, linear_bytes: int
) -> int:
    layers = range(share.layers.start, share.layers.stop)
    linear = sum(layer_parameters(model, share, layer) for layer in layers)
    norms = 2 * model.hidden_size * share.layers.size
    total = linear * linear_bytes + norms * FLOAT_BYTES
    table = share.vocab.size * model.hidden_size
    if share.first_stage:
        total += table * FLOAT_BYTES
    if share.last_stage:
        total += model.hidden_size * FLOAT_BYTES
        # Only an unquantised output head can be the embedding's own table.
        shared = share.first_stage and model.tie_embeddings and not quantized
        total += 0 if shared else table * linear_bytes
    return total + (_scales(model, share) * FLOAT_BYTES if quantized else 0)


def _scales(model: ModelConfig, share: RankShare) -> int:
    """Rows of the quantised linear layers: each has one scale."""
    attention = (share.heads.size + 2 * share.kv_heads.size) * model.head_dim + model.hidden_size
    mlp = 2 * share.intermediate.size + model.hidden_size
    return share.layers.size * (attention + mlp) + share.last_stage * share.vocab.size


def _activation_bytes(model: ModelConfig, config: EngineConfig, share: RankShare) -> int:
    tokens, context = config.token_budget, config.max_model_len or model.context_length
    hidden = tokens * (4 * model.hidden_size + 3 * share.intermediate.size)
    scores = 2 * tokens * share.heads.size * context
    gathered = 2 * config.kv_cache_tokens * share.kv_heads.size * model.head_dim
    logits = 2 * config.max_batch_size * model.vocab_size if share.last_stage else 0
    return FLOAT_BYTES * (hidden + scores + gathered + logits)
