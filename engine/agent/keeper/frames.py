"""What agent and keeper say to each other: a letter, the length, so many bytes.

agent -> keeper   B orders (JSON)   N note   I standard input   K signal   Q leave
keeper -> agent   S started (JSON)   N note   o output told before   O output   P pulse   X code
"""

import struct
from collections.abc import Iterator

HEADER = struct.Struct(">cI")
MAX_FRAME = 4 * 1024 * 1024


def pack(kind: bytes, payload: bytes = b"") -> bytes:
    return HEADER.pack(kind, len(payload)) + payload


class Frames:
    """Bytes in, whole frames out; raises ValueError on nonsense."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._rest += data
        while len(self._rest) >= HEADER.size:
            kind, length = HEADER.unpack_from(self._rest)
            if length > MAX_FRAME:
                raise ValueError(f"A frame of {length} bytes.")
            if len(self._rest) < HEADER.size + length:
                return
            payload = bytes(self._rest[HEADER.size : HEADER.size + length])
            del self._rest[: HEADER.size + length]
            yield kind, payload
