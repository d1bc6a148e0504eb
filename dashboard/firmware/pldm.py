"""The header of a PLDM firmware package (DMTF DSP0267), as `.fwpkg` files begin with. Pure but for
the reading; what does not add up, checksum included, is no package."""

import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FORMATS = {
    uuid.UUID("f018878c-cb7d-4943-9800-a02f059aca02").bytes: 1,
    uuid.UUID("1244d264-8d7d-4718-a030-fc8a56587d5a").bytes: 2,
}
"""Identifier -> revision of the header, 1.0 and 1.1; later ones are not read."""
MOST_HEADER = 64 * 1024
CODINGS = {1: "ascii", 2: "utf-8", 3: "utf-16", 4: "utf-16-le", 5: "utf-16-be"}
CHECKSUM_BYTES = 4


class NoPackage(ValueError):
    """It only looked like one."""


@dataclass(frozen=True)
class Package:
    version: str
    components: Sequence[tuple[int, str]]
    """Identifier and version of each."""

    @property
    def words(self) -> str:
        """For the notes of the image."""
        parts = ", ".join(f"{number:#06x}: {version}" for number, version in self.components)
        return f"PLDM {self.version}" + (f" ({parts})" if parts else "")


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, length: int) -> bytes:
        if self.at + length > len(self._data):
            raise NoPackage("broken off")
        self.at += length
        return self._data[self.at - length : self.at]

    def number(self, form: str) -> int:
        (value,) = struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))
        return int(value)

    def text(self, kind: int, length: int) -> str:
        try:
            return self.take(length).decode(CODINGS[kind]).strip("\0 ")
        except (KeyError, UnicodeDecodeError) as error:
            raise NoPackage("a text of no known kind") from error


def read_package(path: Path) -> Package | None:
    """None where the file is none, or one of a revision that is not read."""
    with path.open("rb") as file:
        data = file.read(MOST_HEADER)
    try:
        return _package(data)
    except NoPackage:
        return None


def _package(data: bytes) -> Package:
    begin = _Cursor(data)
    revision = FORMATS.get(begin.take(16))
    if revision is None or begin.number("B") != revision:
        raise NoPackage("another identifier")
    size = begin.number("H")
    if not begin.at < size <= len(data):
        raise NoPackage("a size that cannot be")
    whole, told = data[: size - CHECKSUM_BYTES], data[size - CHECKSUM_BYTES : size]
    if zlib.crc32(whole) != int.from_bytes(told, "little"):
        raise NoPackage("a wrong checksum")
    cursor = _Cursor(whole)
    cursor.take(begin.at)
    cursor.take(13)  # When it was released.
    cursor.number("H")  # Bits of the bitmaps in the records, which are skipped.
    kind, length = cursor.number("B"), cursor.number("B")
    version = cursor.text(kind, length)
    for _area in range(revision):  # 1.1 has downstream devices after its devices.
        for _record in range(cursor.number("B")):
            cursor.take(_length(cursor.number("H")))
    components = [_component(cursor) for _each in range(cursor.number("H"))]
    return Package(version, components)


def _length(record: int) -> int:
    if record < 2:
        raise NoPackage("a record without a length")
    return record - 2


def _component(cursor: _Cursor) -> tuple[int, str]:
    _classification, number, _stamp = cursor.number("H"), cursor.number("H"), cursor.number("I")
    cursor.take(2 + 2 + 4 + 4)  # Options, activation, place, size.
    kind, length = cursor.number("B"), cursor.number("B")
    return number, cursor.text(kind, length)
