"""The GGUF header, version 2 and 3: typed metadata and the tensor index.

Format: github.com/ggml-org/ggml, docs/gguf.md. Counts and lengths are checked against the file's
size before anything is allocated, so a damaged header fails at once.
"""

import struct
from collections.abc import Iterator, Mapping

import msgspec

from engine.checkpoint.blocks import FORMATS, OTHER_FORMATS, BlockFormat
from engine.checkpoint.gguf.cursor import Cursor
from engine.checkpoint.stored import TensorInfo
from engine.errors import gettext_noop as _
from engine.errors import said

Scalar = bool | int | float | str
Value = Scalar | list[Scalar]

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_METADATA = 10_000
MAX_TENSORS = 100_000
MAX_ARRAY = 4_000_000
MAX_NAME = 65_535
MAX_TEXT = 4 * 1024 * 1024
MAX_DIMENSION = 2**40

_STRING, _ARRAY, _BOOL = 8, 9, 7
_SCALARS = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: struct.Struct("<I"),
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    _BOOL: struct.Struct("<?"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}


class ArrayPlace(msgspec.Struct, frozen=True):
    """An array that is parsed only when asked for."""

    offset: int
    count: int
    kind: int


class Header(msgspec.Struct, frozen=True):
    version: int
    values: dict[str, Scalar | ArrayPlace]
    tensors: dict[str, TensorInfo]


def read_header(cursor: Cursor) -> Header:
    """Parse everything up to the tensor data; raises CheckpointError."""
    if cursor.size < 24 or cursor.take(4, said(_("the magic"))) != MAGIC:
        raise cursor.fail(_("this is not a GGUF file, its first bytes are not 'GGUF'"))
    version = cursor.u32(said(_("the version")))
    if version not in VERSIONS:
        raise cursor.fail(
            _("GGUF version %(version)s is not supported, only 2 and 3 are"), version=version
        )
    tensor_count = cursor.u64(said(_("the tensor count")))
    value_count = cursor.u64(said(_("the metadata count")))
    if value_count > min(MAX_METADATA, cursor.remaining // 13):
        raise cursor.fail(
            _("%(value_count)s metadata entries cannot be real"), value_count=value_count
        )
    if tensor_count > min(MAX_TENSORS, cursor.remaining // 32):
        raise cursor.fail(_("%(tensor_count)s tensors cannot be real"), tensor_count=tensor_count)
    values: dict[str, Scalar | ArrayPlace] = {}
    for index in range(value_count):
        key = cursor.text(said(_("the name of metadata entry %(index)s"), index=index), MAX_NAME)
        if key in values:
            raise cursor.fail(_("metadata %(key)r appears twice"), key=key)
        values[key] = _value(cursor, key)
    return Header(version, values, _tensor_index(cursor, tensor_count, _alignment(cursor, values)))


def read_array(cursor: Cursor, key: str, place: ArrayPlace) -> list[Scalar]:
    """Parse an array with `cursor` placed at its first element."""
    if place.kind == _STRING:
        what = said(_("an item of %(key)r"), key=key)
        return [cursor.text(what, MAX_TEXT) for _ in range(place.count)]
    packed = _SCALARS[place.kind]
    raw = cursor.take(place.count * packed.size, said(_("metadata %(key)r"), key=key))
    return [item for (item,) in packed.iter_unpack(raw)]


def _value(cursor: Cursor, key: str) -> Scalar | ArrayPlace:
    kind = cursor.u32(said(_("the type of %(key)r"), key=key))
    if kind == _ARRAY:
        return _array_place(cursor, key)
    return _scalar(cursor, key, kind)


def _scalar(cursor: Cursor, key: str, kind: int) -> Scalar:
    what = said(_("metadata %(key)r"), key=key)
    if kind == _STRING:
        return cursor.text(what, MAX_TEXT)
    if kind not in _SCALARS:
        raise cursor.fail(_("%(what)s has unknown type %(kind)s"), what=what, kind=kind)
    packed = _SCALARS[kind]
    (value,) = packed.unpack(cursor.take(packed.size, what))
    if isinstance(value, bool | float):
        return value
    return int(value)


def _array_place(cursor: Cursor, key: str) -> ArrayPlace:
    what = said(_("metadata array %(key)r"), key=key)
    kind = cursor.u32(said(_("the item type of %(key)r"), key=key))
    count = cursor.u64(said(_("the length of %(key)r"), key=key))
    if kind != _STRING and kind not in _SCALARS:
        raise cursor.fail(_("%(what)s holds items of unknown type %(kind)s"), what=what, kind=kind)
    width = 8 if kind == _STRING else _SCALARS[kind].size
    if count > min(MAX_ARRAY, cursor.remaining // width):
        raise cursor.fail(
            _("%(what)s claims %(count)s items, more than the file can hold"),
            what=what,
            count=count,
        )
    place = ArrayPlace(cursor.offset, count, kind)
    if kind == _STRING:
        cursor.skip_strings(count, what)
    else:
        cursor.skip(count * width, what)
    return place


def _alignment(cursor: Cursor, values: Mapping[str, Scalar | ArrayPlace]) -> int:
    alignment = values.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 8 <= alignment <= 65_536 or alignment % 8:
        raise cursor.fail(
            _("alignment %(alignment)s is not a multiple of 8 up to 65536"),
            alignment=repr(alignment),
        )
    return alignment


def _tensor_index(cursor: Cursor, count: int, alignment: int) -> dict[str, TensorInfo]:
    relative: dict[str, TensorInfo] = {}
    for index in range(count):
        info = _tensor_info(cursor, index, alignment)
        if info.name in relative:
            raise cursor.fail(_("tensor %(tensor)r appears twice"), tensor=info.name)
        relative[info.name] = info
    base = -(-cursor.offset // alignment) * alignment
    tensors = {
        name: msgspec.structs.replace(info, offset=base + info.offset)
        for name, info in relative.items()
    }
    _check_places(cursor, tensors)
    return tensors


def _tensor_info(cursor: Cursor, index: int, alignment: int) -> TensorInfo:
    name = cursor.text(said(_("the name of tensor %(index)s"), index=index), 64)
    dimensions = cursor.u32(said(_("the rank of tensor %(tensor)r"), tensor=name))
    if not 1 <= dimensions <= 4:
        raise cursor.fail(
            _("tensor %(tensor)r has %(dimensions)s dimensions; 1 to 4 are possible"),
            tensor=name,
            dimensions=dimensions,
        )
    shape = tuple(_dimensions(cursor, name, dimensions))[::-1]
    form = _format(
        cursor, name, cursor.u32(said(_("the format of tensor %(tensor)r"), tensor=name))
    )
    if shape[-1] % form.elements:
        raise cursor.fail(
            _(
                "tensor %(tensor)r has rows of %(columns)s, not whole %(format)s blocks of "
                "%(block)s"
            ),
            tensor=name,
            columns=shape[-1],
            format=form.name,
            block=form.elements,
        )
    offset = cursor.u64(said(_("the offset of tensor %(tensor)r"), tensor=name))
    if offset % alignment:
        raise cursor.fail(
            _("tensor %(tensor)r starts at %(offset)s, not aligned to %(alignment)s"),
            tensor=name,
            offset=offset,
            alignment=alignment,
        )
    info = TensorInfo(name, shape, form, offset, 0, cursor.path)
    return msgspec.structs.replace(info, nbytes=info.elements // form.elements * form.bytes)


def _dimensions(cursor: Cursor, name: str, count: int) -> Iterator[int]:
    for _index in range(count):
        dimension = cursor.u64(said(_("the shape of tensor %(tensor)r"), tensor=name))
        if not 1 <= dimension <= MAX_DIMENSION:
            raise cursor.fail(
                _("tensor %(tensor)r has an impossible dimension %(dimension)s"),
                tensor=name,
                dimension=dimension,
            )
        yield dimension


def _format(cursor: Cursor, name: str, kind: int) -> BlockFormat:
    if kind not in FORMATS:
        known = OTHER_FORMATS.get(kind, f"#{kind}")
        readable = ", ".join(form.name for form in FORMATS.values())
        raise cursor.fail(
            _("tensor %(tensor)r is stored as %(known)s, which is not supported; use %(readable)s"),
            tensor=name,
            known=known,
            readable=readable,
        )
    return FORMATS[kind]


def _check_places(cursor: Cursor, tensors: Mapping[str, TensorInfo]) -> None:
    """Every tensor lies inside the file and none overlaps another."""
    end = 0
    for info in sorted(tensors.values(), key=lambda tensor: tensor.offset):
        if info.offset < end:
            raise cursor.fail(
                _("tensor %(tensor)r overlaps the one before it in the file"), tensor=info.name
            )
        end = info.offset + info.nbytes
        if end > cursor.size:
            raise cursor.truncated(
                _("tensor %(tensor)r takes bytes %(offset)s to %(end)s"),
                tensor=info.name,
                offset=info.offset,
                end=end,
            )
