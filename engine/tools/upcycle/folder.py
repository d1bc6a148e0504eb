"""Hugging Face folder to folder: safetensors are copied, each MLP once for every expert.

Format: github.com/huggingface/safetensors. Names are those of Mixtral's own checkpoints.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec

from engine.checkpoint.folder.families import FAMILIES
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.tools.upcycle.files import Part, Piece, check_room, durable, size_of, write_piece
from engine.tools.upcycle.recipe import Recipe

INDEX = "model.safetensors.index.json"
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx")
_MATRICES = {"gate": "w1", "up": "w3", "down": "w2"}
_MLP = re.compile(r"(model\.layers\.(\d+)\.)mlp\.(gate|up|down)_proj\.weight")
_GONE = ("mlp_bias", "attention_bias", "pretraining_tp", "auto_map", "use_sliding_window")
_MAX_HEADER = 100 << 20


class Tensor(msgspec.Struct, frozen=True):
    name: str
    dtype: str
    shape: list[int]
    piece: Piece


def check_folder(folder: Path) -> dict[str, Any]:
    """The model's config.json; raises CheckpointError for one that has no Mixtral of its own."""
    config = _read_object(folder / "config.json")
    kind = config.get("model_type")
    if kind not in ("llama", "mistral"):
        raise CheckpointError(
            _("%(file)s: only Llama and Mistral models can become mixtures, not %(architecture)r."),
            file=folder.name,
            architecture=str(kind),
        )
    for key, plain in {"mlp_bias": False, "attention_bias": False, "hidden_act": "silu"}.items():
        if config.get(key, plain) != plain:
            raise CheckpointError(
                _("%(file)s: a mixture in Mixtral's layout cannot have %(setting)s = %(value)r."),
                file=folder.name,
                setting=key,
                value=config[key],
            )
    if "quantization_config" in config:
        raise CheckpointError(
            _("%(file)s: its weights are quantised; start from the unquantised model."),
            file=folder.name,
        )
    return config


def write_folder(folder: Path, target: Path, recipe: Recipe) -> None:
    """Write the mixture as a new folder at `target`."""
    config = check_folder(folder)
    files = _weight_files(folder)
    made = {
        path.name: [new for old in _tensors(path) for new in _made(old, config, recipe)]
        for path in files
    }
    everything = [tensor for tensors in made.values() for tensor in tensors]
    total = size_of([tensor.piece for tensor in everything])
    check_room(target, total)
    target.mkdir()
    for name, tensors in made.items():
        _write_safetensors(target / name, tensors)
    if len(files) > 1:
        places = {tensor.name: name for name, tensors in made.items() for tensor in tensors}
        index = {"metadata": {"total_size": total}, "weight_map": places}
        (target / INDEX).write_text(json.dumps(index, indent=2))
    (target / "config.json").write_text(json.dumps(_mixtral(config, recipe), indent=2))
    _copy_rest(folder, target)


def _mixtral(config: dict[str, Any], recipe: Recipe) -> dict[str, Any]:
    kept = _assumed(config) | {key: value for key, value in config.items() if key not in _GONE}
    window = kept.get("sliding_window") if config["model_type"] == "mistral" else None
    return kept | {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "num_local_experts": recipe.experts,
        "num_experts_per_tok": recipe.per_token,
        "output_router_logits": False,
        "sliding_window": window,
    }


def _assumed(config: dict[str, Any]) -> dict[str, Any]:
    """What the dense class takes for settings that are left out; Mixtral's takes others."""
    assumed = {
        "num_key_value_heads": config["num_attention_heads"],
        **FAMILIES[config["model_type"]].defaults,
    }
    if "rope_theta" not in (config.get("rope_parameters") or {}):
        assumed["rope_theta"] = 10_000.0
    return assumed


def _weight_files(folder: Path) -> list[Path]:
    if not (folder / INDEX).exists():
        return [folder / "model.safetensors"]
    places = _read_object(folder / INDEX).get("weight_map", {})
    return [folder / name for name in sorted(set(places.values()))]


def _tensors(path: Path) -> list[Tensor]:
    """Of one safetensors file, in the order in which they are stored."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _MAX_HEADER:
            raise CheckpointError(_("%(file)s: its header cannot be real."), file=path.name)
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    found = []
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"][0]):
        start, stop = entry["data_offsets"]
        piece = Part(path, 8 + length + start, stop - start)
        found.append(Tensor(name, entry["dtype"], entry["shape"], piece))
    return found


def _made(tensor: Tensor, config: dict[str, Any], recipe: Recipe) -> list[Tensor]:
    """What becomes of a tensor; each layer's router comes with its gate."""
    match = _MLP.fullmatch(tensor.name)
    if match is None:
        return [tensor]
    block, layer, part = f"{match[1]}block_sparse_moe.", int(match[2]), match[3]
    made = [
        msgspec.structs.replace(tensor, name=f"{block}experts.{expert}.{_MATRICES[part]}.weight")
        for expert in range(recipe.experts)
    ]
    if part == "gate":
        hidden = int(config["hidden_size"])
        rows = recipe.router(layer, hidden)
        made.append(Tensor(f"{block}gate.weight", "F32", [recipe.experts, hidden], rows))
    return made


def _write_safetensors(path: Path, tensors: list[Tensor]) -> None:
    """Four-byte numbers first, so that every tensor starts where its numbers are aligned."""
    ordered = sorted(tensors, key=lambda tensor: tensor.dtype != "F32")
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in ordered:
        end = offset + size_of([tensor.piece])
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": [offset, end],
        }
        offset = end
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    with durable(path) as out:
        out.write(len(raw).to_bytes(8, "little") + raw)
        for tensor in ordered:
            write_piece(out, tensor.piece)


def _copy_rest(folder: Path, target: Path) -> None:
    """The tokenizer, the template, the licence: every file that holds no weights."""
    for path in sorted(folder.iterdir()):
        made = (target / path.name).exists() or path.name == INDEX
        if path.is_file() and not made and not path.name.endswith(_WEIGHTS):
            shutil.copyfile(path, target / path.name)


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CheckpointError(_("%(file)s cannot be read as JSON."), file=path.name) from error
    if not isinstance(value, dict):
        raise CheckpointError(_("%(file)s cannot be read as JSON."), file=path.name)
    return value
