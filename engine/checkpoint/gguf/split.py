"""GGUF files that come in parts: `name-00001-of-00003.gguf` and so on, each with its own header.

The first part has the model's metadata; the others only `split.*` and their tensors.
"""

import re
from pathlib import Path

import msgspec

from engine.checkpoint.declared import Declared
from engine.checkpoint.files import is_there, opened
from engine.checkpoint.gguf.cursor import Cursor
from engine.checkpoint.gguf.header import Header, read_header
from engine.checkpoint.gguf.metadata import Metadata
from engine.checkpoint.stored import TensorInfo
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _

_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
MAX_PARTS = 1000


class Part(msgspec.Struct, frozen=True):
    path: Path
    header: Header
    size: int


def gguf_parts(path: Path) -> list[Path]:
    """Every file of the model that `path` is, or is the first part of; in order."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return [path]
    count = int(match["count"])
    if int(match["number"]) != 1:
        first = f"{match['stem']}-00001-of-{match['count']}.gguf"
        raise CheckpointError(
            _("%(file)s is a later part of a split model; open the first part, %(first)s."),
            file=path.name,
            first=first,
        )
    if not 1 <= count <= MAX_PARTS:
        raise CheckpointError(
            _("%(file)s: a model in %(count)s parts cannot be real."), file=path.name, count=count
        )
    names = (f"{match['stem']}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1))
    return [path.with_name(name) for name in names]


def read_parts(path: Path) -> list[Part]:
    """All parts, consistent with one another; raises CheckpointError, a missing part by name."""
    paths = gguf_parts(path)
    for file in paths:
        if is_there(path) and not is_there(file):
            raise CheckpointError(
                _("%(file)s: part %(part)s of this model is missing."),
                file=path.name,
                part=file.name,
            )
    parts = [_read(file) for file in paths]
    for index, part in enumerate(parts):
        _check_place(part, index, len(parts))
    return parts


def merged_tensors(parts: list[Part]) -> dict[str, TensorInfo]:
    """Tensors of every part; none twice, and as many as the first part declares."""
    tensors: dict[str, TensorInfo] = {}
    for part in parts:
        for name, info in part.header.tensors.items():
            if name in tensors:
                raise CheckpointError(
                    _("%(file)s: tensor %(tensor)r is in %(other)s too."),
                    file=part.path.name,
                    tensor=name,
                    other=tensors[name].path.name,
                )
            tensors[name] = info
    first = parts[0]
    declared = Declared(first.path.name, first.header.values)
    count = declared.count("split.tensors.count", len(tensors))
    if count != len(tensors):
        raise declared.refuse(
            _("the parts should hold %(count)s tensors together, but hold %(found)s"),
            count=count,
            found=len(tensors),
        )
    return tensors


def _read(path: Path) -> Part:
    with opened(path) as file:
        cursor = Cursor(file.fileno(), path)
        return Part(path, read_header(cursor), cursor.size)


def _check_place(part: Part, index: int, count: int) -> None:
    declared = Declared(part.path.name, Metadata(part.path, part.header))
    said_count = declared.count("split.count", 1)
    if max(1, said_count) != count:
        raise declared.refuse(
            _(
                "it says that its model is in %(said)s parts, but its name stands for %(count)s; "
                "give the parts their original names"
            ),
            said=said_count,
            count=count,
        )
    number = declared.count("split.no", 0)
    if number != index:
        raise declared.refuse(
            _("it says that it is part %(said)s, but its name stands for part %(number)s"),
            said=number + 1,
            number=index + 1,
        )
