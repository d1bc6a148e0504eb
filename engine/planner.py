"""Memory arithmetic: what each rank of a plan needs, and whether a node has it. Pure, no torch."""

import msgspec

from engine.config import BLOCK_SIZE, Dtype, EngineConfig, KvDtype
from engine.holdings import (
    Matrix,
    correction_elements,
    packed_matrices,
    plain_elements,
    router_elements,
)
from engine.model_config import ModelConfig
from engine.shards import RankShare, rank_share

FLOAT_BYTES = 4
ROUTER_BYTES = 8
PROCESS_BYTES = 256 * 1024**2
"""What a rank holds before it has loaded anything: Python and torch, measured on CPU wheels."""
UNIT = 16
"""Rows of int4, rows and columns of fp8 are padded to a multiple of this."""
SCORES_AT_ONCE = 1 << 20
"""Queries times keys whose scores exist at once, for each head; longer ones go part by part."""


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
    model: ModelConfig,
    config: EngineConfig,
    rank: int,
    *,
    integer_dot_products: bool = False,
    own_kernels: bool = False,
) -> MemoryNeed:
    """What global rank `rank` needs; raises PlanError when the plan does not fit the model.

    `integer_dot_products`: whether its processor has AVX-512 VNNI or AMX. Without, int8 weights
    are kept as whole numbers in float32, for speed, and take no less room than fp32.
    `own_kernels`: whether the engine's own are compiled there, which keep them as bytes anyway.
    """
    share = rank_share(model, config.plan, rank)
    packing = _Packing(config, integer_dot_products, own_kernels)
    return MemoryNeed(
        weights=_weight_bytes(model, share, packing),
        kv=(config.num_kv_blocks + 1) * BLOCK_SIZE * kv_token_bytes(model, config, share),
        workspace=PROCESS_BYTES + _activation_bytes(model, config, share),
    )


def kv_token_bytes(model: ModelConfig, config: EngineConfig, share: RankShare) -> int:
    """Bytes that one token's keys and values, or its latents, take on this rank."""
    latent = model.latent
    widths = [latent.cache_width] if latent else [model.head_dim, model.head_dim]
    vectors = share.layers.size * share.kv_heads.size
    return vectors * sum(_vector_bytes(config.kv_dtype, width) for width in widths)


def _vector_bytes(dtype: KvDtype, width: int) -> int:
    """Bytes of one head's key or value; a byte a number needs a scale beside."""
    match dtype:
        case "fp32":
            return 4 * width
        case "bf16":
            return 2 * width
        case "fp8" | "int8":
            return width + FLOAT_BYTES


class _Packing:
    """Bytes of packed matrices in one number type."""

    def __init__(self, config: EngineConfig, integer_dot_products: bool, own_kernels: bool) -> None:
        self.dtype = config.dtype
        self._group = config.int4_group
        self._own_kernels = own_kernels and config.device != "cuda"
        whole = integer_dot_products or config.device == "cuda"
        self._int8_bytes = 1 if whole else FLOAT_BYTES

    def nbytes(self, matrix: Matrix) -> int:
        bias = matrix.rows * FLOAT_BYTES if matrix.bias else 0
        return self._codes_and_scales(matrix.rows, matrix.columns, self.dtype) + bias

    def head_bytes(self, matrix: Matrix) -> int:
        """Of the output head, which int4 leaves int8."""
        dtype: Dtype = "int8" if self.dtype == "int4" else self.dtype
        return self._codes_and_scales(matrix.rows, matrix.columns, dtype)

    def _codes_and_scales(self, rows: int, columns: int, dtype: Dtype) -> int:
        match dtype:
            case "fp32":
                return rows * columns * FLOAT_BYTES
            case "bf16":
                return rows * columns * 2
            case "int8" if self._own_kernels:
                # Beside the codes a scale and a sum for each row.
                return _padded(rows) * (_padded(columns, 4) + 2 * FLOAT_BYTES)
            case "int8":
                return rows * (columns * self._int8_bytes + FLOAT_BYTES)
            case "fp8":
                return _padded(rows) * (_padded(columns) + FLOAT_BYTES)
            case "int4":
                groups = -(-columns // self._group)
                # Half a byte for each code, two bf16 numbers for each group.
                if self._own_kernels:
                    return _padded(rows) * (_padded(columns, 32) // 2 + groups * 4)
                return _padded(rows) * groups * (self._group // 2 + 4)


def _padded(count: int, unit: int = UNIT) -> int:
    return -(-count // unit) * unit


def _weight_bytes(model: ModelConfig, share: RankShare, packing: _Packing) -> int:
    plain = plain_elements(model, share) + correction_elements(model, share)
    total = plain * FLOAT_BYTES + router_elements(model, share) * ROUTER_BYTES
    matrices = list(packed_matrices(model, share))
    if share.last_stage:
        head = matrices.pop()
        # Only an unquantised output head can be the embedding's own table.
        shared = share.first_stage and model.tie_embeddings and packing.dtype == "fp32"
        total += 0 if shared else packing.head_bytes(head)
    return total + sum(map(packing.nbytes, matrices))


def _activation_bytes(model: ModelConfig, config: EngineConfig, share: RankShare) -> int:
    tokens, context = config.token_budget, config.max_model_len or model.context_length
    width = max(share.intermediate.size, share.expert_columns.size, share.shared_columns.size)
    hidden = tokens * (4 * model.hidden_size + 3 * width)
    scores = 2 * share.heads.size * min(tokens * context, SCORES_AT_ONCE)
    head = model.latent.cache_width if model.latent else model.head_dim
    gathered = 2 * config.kv_cache_tokens * share.kv_heads.size * head
    logits = 2 * config.max_batch_size * model.vocab_size if share.last_stage else 0
    return FLOAT_BYTES * (hidden + scores + gathered + logits)
