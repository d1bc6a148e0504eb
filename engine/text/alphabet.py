"""How vocabulary entries spell bytes.

Byte-level BPE writes each of the 256 as one printable character (GPT-2's table). SentencePiece
writes text as it is but for spaces, and single bytes as `<0x0A>`.
"""

import re
from collections.abc import Mapping


def _alphabet() -> dict[str, int]:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    hidden = [byte for byte in range(256) if byte not in printable]
    return table | {chr(0x100 + index): byte for index, byte in enumerate(hidden)}


BYTE_OF: Mapping[str, int] = _alphabet()


def spelled_bytes(token: str) -> bytes:
    """Bytes a vocabulary entry stands for; an entry outside the alphabet is its own text."""
    try:
        return bytes(BYTE_OF[character] for character in token)
    except KeyError:
        return token.encode()


_BYTE = re.compile("<0x([0-9A-F]{2})>")


def metaspace_bytes(token: str, *, may_be_byte: bool) -> bytes:
    """Bytes a SentencePiece entry stands for."""
    if may_be_byte and (byte := _BYTE.fullmatch(token)):
        return bytes([int(byte[1], 16)])
    return token.replace("▁", " ").encode()
