"""The header of a safetensors file, by our own reader: strict and bounded.

Format: github.com/huggingface/safetensors, README. 8 bytes of length, a JSON object of dtype, shape
and byte range by tensor name, then the data without holes.
"""

import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from engine.checkpoint.blocks import FORMATS, BlockFormat
from engine.checkpoint.files import decoded, opened, parse_object
from engine.checkpoint.stored import TensorInfo
from engine.errors import CheckpointError, Part, Said
from engine.errors import gettext_noop as _

MAX_HEADER = 100_000_000
"""Bytes; the format's own limit."""
MAX_DIMENSION = 2**40
READABLE: dict[str, BlockFormat] = {
    form.name: form for form in FORMATS.values() if form.name in ("F32", "F16", "BF16")
}


def read_header(path: Path) -> dict[str, TensorInfo]:
    """Every tensor of one file by the name it has there; raises CheckpointError."""
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 10 or length > size - 8:
            raise _wrong(path, _("this is not a safetensors file, or it is truncated"))
        if length > MAX_HEADER:
            raise _wrong(
                path,
                _("the header claims to be %(length)s bytes long; the limit is %(limit)s"),
                length=length,
                limit=MAX_HEADER,
            )
        raw = file.read(length)
    entries = parse_object(path.name, decoded(path.name, raw))
    entries.pop("__metadata__", None)
    base = 8 + length
    tensors = {name: _tensor(path, name, entry, base, size) for name, entry in entries.items()}
    _check_places(path, tensors, base, size)
    return tensors


def _tensor(path: Path, name: str, entry: object, base: int, size: int) -> TensorInfo:
    if not isinstance(entry, Mapping):
        raise _wrong(path, _("the entry of tensor %(tensor)r is damaged"), tensor=name)
    form = _format(path, name, entry.get("dtype"))
    shape = _shape(path, name, entry.get("shape"))
    start, end = _range(path, name, entry.get("data_offsets"))
    nbytes = prod(shape) * form.bytes
    if end - start != nbytes:
        raise _wrong(
            path,
            _("tensor %(tensor)r takes %(found)s bytes, but its shape needs %(needed)s"),
            tensor=name,
            found=end - start,
            needed=nbytes,
        )
    if base + end > size:
        raise CheckpointError(
            _(
                "%(file)s is truncated: tensor %(tensor)r ends at byte %(end)s, but the file ends "
                "at byte %(size)s."
            ),
            file=path.name,
            tensor=name,
            end=base + end,
            size=size,
        )
    return TensorInfo(name, shape, form, base + start, nbytes, path)


def _format(path: Path, name: str, dtype: object) -> BlockFormat:
    form = READABLE.get(dtype) if isinstance(dtype, str) else None
    if form is None:
        raise _wrong(
            path,
            _(
                "tensor %(tensor)r is stored as %(known)s, which is not supported; use a "
                "checkpoint in %(readable)s, or a quantised GGUF file"
            ),
            tensor=name,
            known=str(dtype)[:40],
            readable=", ".join(READABLE),
        )
    return form


def _shape(path: Path, name: str, shape: object) -> tuple[int, ...]:
    if not isinstance(shape, list) or not 1 <= len(shape) <= 4:
        raise _wrong(path, _("tensor %(tensor)r should have 1 to 4 dimensions"), tensor=name)
    for dimension in shape:
        if type(dimension) is not int or not 1 <= dimension <= MAX_DIMENSION:
            raise _wrong(
                path,
                _("tensor %(tensor)r has an impossible dimension %(dimension)s"),
                tensor=name,
                dimension=repr(dimension)[:40],
            )
    return tuple(shape)


def _range(path: Path, name: str, offsets: Any) -> tuple[int, int]:
    sound = (
        isinstance(offsets, list)
        and len(offsets) == 2
        and all(type(offset) is int for offset in offsets)
        and 0 <= offsets[0] <= offsets[1] < 2**60
    )
    if not sound:
        raise _wrong(path, _("tensor %(tensor)r has an impossible byte range"), tensor=name)
    return offsets[0], offsets[1]


def _check_places(path: Path, tensors: Mapping[str, TensorInfo], base: int, size: int) -> None:
    """No overlap, no hole, nothing behind the last tensor."""
    end = base
    for info in sorted(tensors.values(), key=lambda tensor: tensor.offset):
        if info.offset < end:
            raise _wrong(path, _("tensor %(tensor)r overlaps the one before it"), tensor=info.name)
        if info.offset > end:
            raise _wrong(
                path,
                _("%(count)s bytes before tensor %(tensor)r belong to no tensor"),
                tensor=info.name,
                count=info.offset - end,
            )
        end = info.offset + info.nbytes
    if end != size:
        raise _wrong(path, _("the last %(count)s bytes belong to no tensor"), count=size - end)


def _wrong(path: Path, problem: str, /, **parts: Part) -> CheckpointError:
    return CheckpointError(
        _("%(file)s: %(problem)s."), file=path.name, problem=Said(problem, parts)
    )
