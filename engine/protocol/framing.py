"""Length-prefixed msgpack frames over a byte stream.

A frame is a 4-byte big-endian length followed by one msgpack message. Never pickle.
"""

import asyncio
import socket
import struct

from engine.errors import ProtocolError
from engine.errors import gettext_noop as _

MAX_FRAME = 64 * 1024 * 1024
_LENGTH = struct.Struct(">I")


def pack_frame(payload: bytes) -> bytes:
    if len(payload) > MAX_FRAME:
        raise ProtocolError(
            _("A message of %(size)s bytes exceeds the %(limit)s byte limit."),
            size=len(payload),
            limit=MAX_FRAME,
        )
    return _LENGTH.pack(len(payload)) + payload


async def read_frame(reader: asyncio.StreamReader, limit: int = MAX_FRAME) -> bytes:
    """Next payload, of at most `limit` bytes; raises IncompleteReadError when the peer has gone."""
    header = await reader.readexactly(_LENGTH.size)
    return await reader.readexactly(_checked_length(header, limit))


def recv_frame(sock: socket.socket) -> bytes:
    """Blocking twin of `read_frame` for rank processes; raises EOFError when the peer has gone."""
    return _recv_exactly(sock, _checked_length(_recv_exactly(sock, _LENGTH.size)))


def _checked_length(header: bytes, limit: int = MAX_FRAME) -> int:
    (length,) = _LENGTH.unpack(header)
    if length > limit:
        raise ProtocolError(
            _("A peer announced a message of %(length)s bytes; refused."), length=length
        )
    return int(length)


def _recv_exactly(sock: socket.socket, count: int) -> bytes:
    chunks = bytearray()
    while len(chunks) < count:
        chunk = sock.recv(count - len(chunks))
        if not chunk:
            raise EOFError("The peer closed the connection.")
        chunks += chunk
    return bytes(chunks)
