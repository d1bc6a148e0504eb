"""What an agent leaves with a keeper, so that the next agent knows what the process is."""

import msgspec

from engine.protocol.launch import ProcessSpec


class Note(msgspec.Struct, frozen=True, kw_only=True):
    spec: ProcessSpec
    restarts: int
    failures: int
    started_at: float


def encode_note(note: Note) -> bytes:
    return msgspec.json.encode(note)


def decode_note(data: bytes) -> Note:
    """Raises msgspec.MsgspecError for a note of another version."""
    return msgspec.json.decode(data, type=Note)
