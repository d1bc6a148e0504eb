"""GGUF to GGUF: quantised blocks are copied as they are, each MLP once for every expert.

Format: github.com/ggml-org/ggml, docs/gguf.md. Experts are stacked as llama.cpp stacks them.
"""

import os
import struct
from pathlib import Path

import msgspec

from engine.checkpoint import Checkpoint
from engine.checkpoint.blocks import FORMATS
from engine.checkpoint.gguf.cursor import Cursor
from engine.checkpoint.gguf.header import MAGIC, MAX_NAME
from engine.checkpoint.gguf.split import read_parts
from engine.checkpoint.stored import TensorInfo
from engine.errors import CheckpointError, said
from engine.errors import gettext_noop as _
from engine.tools.upcycle.files import Part, Piece, check_room, durable, size_of, write_piece
from engine.tools.upcycle.recipe import Recipe

_ALIGNMENT = 32
_STRING, _UINT32, _ARRAY = 8, 4, 9
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_REPLACED = ("general.name", "general.alignment", "split.")
_STACKED = {f"ffn_{part}.weight": f"ffn_{part}_exps.weight" for part in ("gate", "up", "down")}
_FORMAT_IDS = {form.name: number for number, form in FORMATS.items()}


class Tensor(msgspec.Struct, frozen=True):
    """One tensor of the new file; `shape` is row-major."""

    name: str
    shape: tuple[int, ...]
    format: str
    pieces: list[Piece]


def check_gguf(source: Checkpoint) -> None:
    """Raise CheckpointError for a model that has no Mixtral of its own."""
    if source.config.architecture != "llama":
        raise CheckpointError(
            _("%(file)s: only Llama and Mistral models can become mixtures, not %(architecture)r."),
            file=source.path.name,
            architecture=source.config.architecture,
        )


def write_gguf(source: Checkpoint, target: Path, recipe: Recipe) -> None:
    """Write the mixture as a new file at `target`."""
    stored = [
        info
        for part in read_parts(source.path)
        for info in sorted(part.header.tensors.values(), key=lambda info: info.offset)
    ]
    tensors = [made for info in stored for made in _made(info, source, recipe)]
    entries = _metadata(source, recipe)
    header = _header(entries, tensors)
    check_room(target, len(header) + sum(_aligned(size_of(tensor.pieces)) for tensor in tensors))
    with durable(target) as out:
        out.write(header)
        for tensor in tensors:
            for piece in tensor.pieces:
                write_piece(out, piece)
            out.write(_padding(size_of(tensor.pieces)))


def _made(info: TensorInfo, source: Checkpoint, recipe: Recipe) -> list[Tensor]:
    """What becomes of a tensor; each layer's router comes with its gate."""
    whole: Piece = Part(info.path, info.offset, info.nbytes)
    layer, _dot, part = info.name.removeprefix("blk.").partition(".")
    if part not in _STACKED:
        return [Tensor(info.name, info.shape, info.format.name, [whole])]
    name, shape = f"blk.{layer}.{_STACKED[part]}", (recipe.experts, *info.shape)
    stack = Tensor(name, shape, info.format.name, [whole] * recipe.experts)
    if part != "ffn_gate.weight":
        return [stack]
    hidden = source.config.hidden_size
    rows: list[Piece] = [recipe.router(int(layer), hidden)]
    router = Tensor(f"blk.{layer}.ffn_gate_inp.weight", (recipe.experts, hidden), "F32", rows)
    return [router, stack]


def _metadata(source: Checkpoint, recipe: Recipe) -> list[bytes]:
    """The source's entries as they are stored, but for those that change."""
    with source.path.open("rb") as file:
        spans = _entries(Cursor(file.fileno(), source.path))
        kept = [
            os.pread(file.fileno(), stop - start, start)
            for key, start, stop in spans
            if not key.startswith(_REPLACED)
        ]
    name = f"{source.name} x{recipe.experts}"
    return [
        *kept,
        _key("general.name") + struct.pack("<I", _STRING) + _text(name),
        _key("llama.expert_count") + struct.pack("<II", _UINT32, recipe.experts),
        _key("llama.expert_used_count") + struct.pack("<II", _UINT32, recipe.per_token),
    ]


def _entries(cursor: Cursor) -> list[tuple[str, int, int]]:
    """Key, first byte and end of each metadata entry of a verified file."""
    what = said(_("the metadata"))
    cursor.take(len(MAGIC) + 4 + 8, what)
    spans = []
    for _index in range(cursor.u64(what)):
        start = cursor.offset
        key = cursor.text(what, MAX_NAME)
        kind = cursor.u32(what)
        if kind == _ARRAY:
            kind, count = cursor.u32(what), cursor.u64(what)
        else:
            count = 1
        if kind == _STRING:
            cursor.skip_strings(count, what)
        else:
            cursor.skip(count * _WIDTHS[kind], what)
        spans.append((key, start, cursor.offset))
    return spans


def _header(entries: list[bytes], tensors: list[Tensor]) -> bytes:
    index, offset = [], 0
    for tensor in tensors:
        dimensions = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape[::-1])
        place = struct.pack("<IQ", _FORMAT_IDS[tensor.format], offset)
        index.append(_key(tensor.name) + dimensions + place)
        offset += _aligned(size_of(tensor.pieces))
    counts = struct.pack("<IQQ", 3, len(tensors), len(entries))
    header = MAGIC + counts + b"".join(entries) + b"".join(index)
    return header + _padding(len(header))


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


_key = _text


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _padding(size: int) -> bytes:
    return bytes(_aligned(size) - size)
