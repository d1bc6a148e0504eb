"""Head <-> rank messages.

The head decides; a rank acts only on `Step{epoch, n}` in order and refuses any other. Both sides
mirror the rows' sequence state; `digest` proves that the mirrors agree before any collective is
issued. Session, in order:

    rank -> head   Hello
    head -> rank   Welcome                (after every rank said Hello)
    rank 0 -> head Meeting{port}          (rank 0 opened the rendezvous store)
    head -> rank   Join{host, port}       (to all ranks)
    rank -> head   Progress ... Ready
    head -> rank   Step 0, 1, 2, ...      rank -> head  Result per step (from the output rank)
                                          and StepDone (from every other rank)
    head -> rank   Shutdown
"""

import hashlib
from typing import Literal

import msgspec

from engine.errors import Said

PROTOCOL_VERSION = 1

Phase = Literal["starting", "meeting", "loading", "warming", "ready", "idle", "step"]


class Sampling(msgspec.Struct, frozen=True, array_like=True):
    """How one request's next token is drawn. temperature 0 is greedy; top_k 0 is off.

    Noise is keyed by (seed, position), never by call count, so a replay draws the same token.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One sequence's share of a step: `tokens` at positions start .. start+len(tokens)-1."""

    seq: int
    tokens: list[int]
    start: int
    new_blocks: list[int]
    """Block ids appended to the sequence's block table before this step."""
    sample: bool
    """Whether the last token's logits are sampled (false inside a chunked prefill)."""
    admit: Sampling | None = None
    """Present on the sequence's first row: the rank creates its mirror."""


class Step(msgspec.Struct, frozen=True, tag="step"):
    epoch: int
    n: int
    rows: list[Row]
    released: list[int]
    """Sequences that ended since the last step; dropped before the rows are applied."""
    digest: bytes


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    version: int
    launch: str
    token: str
    rank: int
    pid: int


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    epoch: int


class Meeting(msgspec.Struct, frozen=True, tag="meeting"):
    host: str
    port: int


class Join(msgspec.Struct, frozen=True, tag="join"):
    host: str
    port: int


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    phase: Phase
    fraction: float | None = None
    detail: str = ""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    weight_bytes: int
    kv_bytes: int
    load_seconds: float
    kv_heads: int
    first_layer: int
    last_layer: int
    """Inclusive."""
    kernel: str
    """Name of the linear kernel in use, e.g. `int8 oneDNN` or `fp32`."""
    transport: str = "none"
    """What carries collectives: `tcp` or `gloo`, or `none` for a single rank."""


class Timings(msgspec.Struct, frozen=True, array_like=True):
    """Seconds a rank spent on one step."""

    total: float
    compute: float
    communicate: float


class Result(msgspec.Struct, frozen=True, tag="result"):
    """From the output rank (last stage, tp_rank 0): one token per sampled row, in row order."""

    n: int
    tokens: list[int]
    failed: list[int]
    """Sequences whose logits were not finite; only these requests fail. Their places in `tokens`
    mean nothing."""
    timings: Timings


class StepDone(msgspec.Struct, frozen=True, tag="done"):
    n: int
    timings: Timings


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    reason: Said


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    pass


class Pong(msgspec.Struct, frozen=True, tag="pong"):
    phase: Phase
    n: int
    """Last step begun; -1 before the first."""


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown"):
    pass


FromRank = Hello | Meeting | Progress | Ready | Result | StepDone | Failed | Pong
ToRank = Welcome | Join | Step | Ping | Shutdown

_encoder = msgspec.msgpack.Encoder()
_from_rank: msgspec.msgpack.Decoder[FromRank] = msgspec.msgpack.Decoder(FromRank)
_to_rank: msgspec.msgpack.Decoder[ToRank] = msgspec.msgpack.Decoder(ToRank)


def encode(message: FromRank | ToRank) -> bytes:
    return _encoder.encode(message)


def decode_from_rank(payload: bytes) -> FromRank:
    return _from_rank.decode(payload)


def decode_to_rank(payload: bytes) -> ToRank:
    return _to_rank.decode(payload)


def step_digest(epoch: int, n: int, mirrors: list[tuple[int, int, int]]) -> bytes:
    """Of the rows after the step, in row order: (seq, tokens computed, blocks held)."""
    return hashlib.blake2b(_encoder.encode((epoch, n, mirrors)), digest_size=8).digest()
