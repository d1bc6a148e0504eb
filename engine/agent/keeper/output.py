"""The last bytes that an engine printed, and how far they were told. Pure."""

TAIL_BYTES = 128 * 1024
"""Kept for an agent that is away."""
MOST_AT_ONCE = 65536


class Output:
    def __init__(self) -> None:
        self._kept = bytearray()
        self._first = 0
        self._told = 0

    def add(self, chunk: bytes) -> None:
        self._kept += chunk
        surplus = max(0, len(self._kept) - TAIL_BYTES)
        del self._kept[:surplus]
        self._first += surplus

    @property
    def fresh(self) -> bool:
        return self._told < self._first + len(self._kept)

    def old(self) -> bytes:
        return bytes(self._kept[: max(0, self._told - self._first)])

    def take(self) -> bytes:
        begin = max(self._told, self._first) - self._first
        chunk = bytes(self._kept[begin : begin + MOST_AT_ONCE])
        self._told = self._first + begin + len(chunk)
        return chunk
