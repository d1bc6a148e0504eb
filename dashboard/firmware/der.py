"""Just enough of DER (X.690) to read a detached CMS signature. Pure and strict."""

from collections.abc import Iterator
from dataclasses import dataclass

SEQUENCE, SET, OID, OCTETS = 0x30, 0x31, 0x06, 0x04
MOST_DEPTH_BYTES = 4
MOST_OID_BYTES = 64


class DerError(ValueError):
    """Not DER, or not what is expected here."""


@dataclass(frozen=True)
class Value:
    tag: int
    content: bytes
    whole: bytes
    """With its tag and length, as it stands in the file."""

    def expect(self, tag: int) -> "Value":
        if self.tag != tag:
            raise DerError(f"tag {self.tag:#x} where {tag:#x} belongs")
        return self

    def parts(self) -> list["Value"]:
        return list(values(self.content))

    @property
    def oid(self) -> str:
        self.expect(OID)
        return _dotted(self.content)


def read(data: bytes) -> Value:
    """One value and nothing after it."""
    found = list(values(data))
    if len(found) != 1:
        raise DerError("more than one value")
    return found[0]


def values(data: bytes) -> Iterator[Value]:
    at = 0
    while at < len(data):
        tag, begin, end = _head(data, at)
        yield Value(tag, data[begin:end], data[at:end])
        at = end


def _head(data: bytes, at: int) -> tuple[int, int, int]:
    """Tag, and where the content begins and ends."""
    if at + 2 > len(data) or data[at] & 0x1F == 0x1F:
        raise DerError("broken off, or a tag of several bytes")
    tag, length, begin = data[at], data[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        if not 1 <= count <= MOST_DEPTH_BYTES or begin + count > len(data):
            raise DerError("a length of no definite form")
        length = int.from_bytes(data[begin : begin + count], "big")
        begin += count
    if begin + length > len(data):
        raise DerError("broken off")
    return tag, begin, begin + length


def _dotted(content: bytes) -> str:
    if not content or content[-1] & 0x80 or len(content) > MOST_OID_BYTES:
        raise DerError("an object identifier that is none")
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(str(number) for number in (first, numbers[0] - 40 * first, *numbers[1:]))
