"""A GGUF file's tensors by the engine's names: experts one by one, latent projections whole."""

import re
from collections.abc import Mapping

from engine.checkpoint.stored import Piece, Stack, Stored, TensorInfo
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _

ROPE_FREQS = "rope_freqs.weight"
LONG_FACTORS, SHORT_FACTORS = "rope_factors_long.weight", "rope_factors_short.weight"

_STACKED = re.compile(r"(?P<layer>blk\.\d+\.)ffn_(?P<part>gate|up|down|gate_up)_exps\.weight")
_KEYS = re.compile(r"(?P<layer>blk\.\d+\.)attn_k_b\.weight")


def model_tensors(stored: Mapping[str, TensorInfo]) -> dict[str, Stored]:
    """Without the rotary divisors, which are read as part of the configuration."""
    tensors: dict[str, Stored] = {}
    for name, info in stored.items():
        if name in (ROPE_FREQS, LONG_FACTORS, SHORT_FACTORS):
            continue
        for item in _split(name, info, stored):
            if item.name in tensors:
                raise CheckpointError(
                    _("%(file)s: tensor %(tensor)r appears twice."),
                    file=info.path.name,
                    tensor=item.name,
                )
            tensors[item.name] = item
    return tensors


def _split(name: str, info: TensorInfo, stored: Mapping[str, TensorInfo]) -> list[Stored]:
    stacked = _STACKED.fullmatch(name)
    if stacked and len(info.shape) == 3:
        return list(_experts(stacked["layer"], stacked["part"], info))
    keys = _KEYS.fullmatch(name)
    if keys:
        return _latent(info, stored.get(f"{keys['layer']}attn_v_b.weight"), keys["layer"], stored)
    if name.endswith("attn_v_b.weight") and name.replace("attn_v_b", "attn_k_b") in stored:
        return []
    return [info]


def _experts(layer: str, part: str, info: TensorInfo) -> list[TensorInfo]:
    """One matrix for each expert; gate and up may share a tensor, gate first."""
    count, rows, _columns = info.shape
    names = part.split("_")
    height = rows // len(names)
    return [
        info.matrix(f"{layer}ffn_{name}.{expert}.weight", expert * rows + index * height, height)
        for expert in range(count)
        for index, name in enumerate(names)
    ]


def _latent(
    keys: TensorInfo, values: TensorInfo | None, layer: str, stored: Mapping[str, TensorInfo]
) -> list[Stored]:
    """`attn_kv_b` from the pair that newer files hold: head by head, keys transposed.

    Shapes: keys (heads, kv_rank, nope_dim), values (heads, value_dim, kv_rank).
    """
    name = f"{layer}attn_kv_b.weight"
    if name in stored:
        return []
    if values is None or len(keys.shape) != 3 or len(values.shape) != 3:
        return [keys]
    heads, rank, nope = keys.shape
    if (values.shape[0], values.shape[2]) != (heads, rank):
        raise CheckpointError(
            _("%(file)s: tensors %(keys)r and %(values)r do not fit each other."),
            file=keys.path.name,
            keys=keys.name,
            values=values.name,
        )
    width = values.shape[1]
    pieces = [
        piece
        for head in range(heads)
        for piece in (
            Piece(keys.matrix(name, head * rank, rank), transposed=True),
            Piece(values.matrix(name, head * width, width)),
        )
    ]
    return [Stack(name, (heads * (nope + width), rank), tuple(pieces))]
