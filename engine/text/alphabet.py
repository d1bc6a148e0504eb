"""The 256 printable characters by which byte-level BPE vocabularies spell bytes (GPT-2's table)."""

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
