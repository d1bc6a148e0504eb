"""What a decode step of ours has to read and multiply, at the least. Pure arithmetic."""

from engine.config import Dtype, KvDtype, ParallelPlan
from engine.holdings import Matrix, packed_matrices
from engine.model_config import ModelConfig
from engine.shards import rank_share

_BYTES: dict[str, int] = {"fp32": 4, "bf16": 2, "int8": 1, "fp8": 1}
_SCALE = 4


def shapes(model: ModelConfig) -> list[tuple[int, int]]:
    """(outputs, inputs) of every matrix that a step multiplies with, the head's last."""
    return [(matrix.rows, matrix.columns) for matrix in _matrices(model)]


def operations(model: ModelConfig) -> int:
    """Multiplications and additions of the matrices, a token."""
    return 2 * sum(matrix.elements for matrix in _matrices(model))


def step_bytes(model: ModelConfig, dtype: Dtype, int4_group: int) -> int:
    """Of all matrices once, as compact as the number type allows; of the embedding a step reads a
    row a token, which is nothing beside them."""
    *layers, head = _matrices(model)
    head_dtype: Dtype = "int8" if dtype == "int4" else dtype
    return sum(_bytes(matrix, dtype, int4_group) for matrix in layers) + _bytes(
        head, head_dtype, int4_group
    )


def kv_token_bytes(model: ModelConfig, dtype: KvDtype) -> int:
    """Keys and values of one token."""
    latent = model.latent
    widths = [latent.cache_width] if latent else [model.head_dim] * 2
    scale = _SCALE if dtype in ("int8", "fp8") else 0
    heads = model.num_layers * (1 if latent else model.num_kv_heads)
    return heads * sum(width * _BYTES[dtype] + scale for width in widths)


def _matrices(model: ModelConfig) -> list[Matrix]:
    return list(packed_matrices(model, rank_share(model, ParallelPlan(), 0)))


def _bytes(matrix: Matrix, dtype: Dtype, group: int) -> int:
    if dtype == "int4":
        groups = -(-matrix.columns // group)
        # Half a byte for each code, a scale and a centre of two bytes for each group.
        return matrix.rows * groups * (group // 2 + 4)
    scale = _SCALE if dtype in ("int8", "fp8") else 0
    return matrix.rows * (matrix.columns * _BYTES[dtype] + scale)
