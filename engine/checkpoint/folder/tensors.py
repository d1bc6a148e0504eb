"""A folder's tensors by the engine's names."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from engine.checkpoint.complete import check_count, check_tensors, foreign
from engine.checkpoint.folder.names import Names, is_redundant
from engine.checkpoint.stored import Stored, TensorInfo
from engine.checkpoint.tensors import expected_shapes, expert_part, layer_tensor
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.model_config import ModelConfig

_IMAGES = ("vision_tower.", "model.vision_tower.", "multi_modal_projector.", "model.multi_modal")


def model_tensors(
    folder: Path, config: ModelConfig, stored: Mapping[str, TensorInfo], extra_layers: int
) -> dict[str, Stored]:
    """Exactly the model's tensors; raises CheckpointError, naming file and tensor."""
    names = Names(config)
    _check_possible(folder, config, stored, names)
    wanted = {names.spoken(tensor): tensor for tensor in expected_shapes(config)}
    tensors: dict[str, Stored] = {}
    for stored_name, info in stored.items():
        name = names.plain(stored_name)
        if is_redundant(name, config, extra_layers):
            continue
        for item in _renamed(name, info, wanted, names):
            if item.name in tensors:
                raise _twice(info, stored_name)
            tensors[item.name] = item
        if not _is_known(name, wanted, names):
            raise _unknown(stored_name, info, config)
    check_tensors(folder.name, config, tensors, names.spoken)
    return tensors


def _renamed(
    name: str, info: TensorInfo, wanted: Mapping[str, str], names: Names
) -> list[TensorInfo]:
    if name in wanted:
        return [msgspec.structs.replace(info, name=wanted[name])]
    fused = names.fused.fullmatch(name)
    if fused is None:
        return []
    if len(info.shape) != 3:
        raise CheckpointError(
            _("%(file)s: tensor %(tensor)r has %(dimensions)s dimensions."),
            file=info.path.name,
            tensor=name,
            dimensions=len(info.shape),
        )
    parts = ("ffn_gate", "ffn_up") if fused["part"] == "gate_up" else ("ffn_down",)
    return _experts(int(fused["layer"]), parts, info)


def _experts(layer: int, parts: tuple[str, ...], info: TensorInfo) -> list[TensorInfo]:
    """One matrix for each expert and part of a stack (experts, rows of all parts, columns)."""
    count, rows, _columns = info.shape
    height = rows // len(parts)
    return [
        info.matrix(
            layer_tensor(layer, expert_part(part, expert)), expert * rows + index * height, height
        )
        for expert in range(count)
        for index, part in enumerate(parts)
    ]


def _is_known(name: str, wanted: Mapping[str, str], names: Names) -> bool:
    return name in wanted or names.fused.fullmatch(name) is not None


def _check_possible(
    folder: Path, config: ModelConfig, stored: Mapping[str, TensorInfo], names: Names
) -> None:
    """Before a table of all tensors is built: every layer has its first norm."""
    known = {names.plain(name): info for name, info in stored.items()}
    layers = range(min(config.num_layers, len(known) + 1))
    norms = {layer: layer_tensor(layer, "attn_norm.weight") for layer in layers}
    present = {
        norm: known[names.spoken(norm)] for norm in norms.values() if names.spoken(norm) in known
    }
    if len(present) < config.num_layers:
        missing = next((norm for norm in norms.values() if norm not in present), norms[0])
        raise CheckpointError(
            _("%(file)s: tensor %(tensor)r is missing."),
            file=folder.name,
            tensor=names.spoken(missing),
        )
    check_count(folder.name, config, present)


def _unknown(stored_name: str, info: TensorInfo, config: ModelConfig) -> CheckpointError:
    if stored_name.startswith(_IMAGES):
        return CheckpointError(
            _(
                "%(file)s: tensor %(tensor)r belongs to an image encoder, which is not "
                "supported; use the text-only checkpoint of this model."
            ),
            file=info.path.name,
            tensor=stored_name,
        )
    return foreign(info.path.name, stored_name, config)


def _twice(info: TensorInfo, name: str) -> CheckpointError:
    return CheckpointError(
        _("%(file)s: tensor %(tensor)r appears twice."), file=info.path.name, tensor=name
    )
