"""Head <-> rank messages.

The head decides; a rank acts only on `Step{epoch, n}` in order and refuses any other. Both sides
mirror the rows' sequence state; `digest` proves that the mirrors agree before any collective is
issued. Session, in order:

    rank -> head   Hello
    head -> rank   Welcome                (after every rank said Hello)
    rank 0 -> head Meeting{port}          (rank 0 opened the rendezvous store)
    head -> rank   Join{host, port}       (to all ranks)
    rank -> head   Progress ... Loaded
    head -> rank   Fit{kv_blocks}         (what every rank has room for)
    rank -> head   Progress ... Ready
    head -> rank   Step 0, 1, 2, ...      rank -> head  Result per step (from the output rank)
                                          and StepDone (from every other rank)
    head -> rank   Shutdown

A fault ends the epoch: the head hangs up on every rank, each leaves with EPOCH_OVER and is started
again by its agent, and the session begins anew with the next epoch. Steps count from 0 in each.
"""

import hashlib
from typing import Literal

import msgspec

from engine.errors import Said

PROTOCOL_VERSION = 3

PENDING = -1
"""In place of a row's only token: the one that the step before this drew for the sequence, which
the ranks know and the head does not yet."""

Phase = Literal["starting", "meeting", "loading", "fitting", "warming", "ready", "idle", "step"]

Doing = Literal["", "waiting", "compute", "all-reduce", "gather", "send", "receive", "sample"]


class Sampling(msgspec.Struct, frozen=True, array_like=True):
    """How one request's next token is drawn. temperature 0 is greedy; top_k 0 is off.

    In order: bias, penalties, what is forbidden (grammar, stop tokens before min_tokens), then
    temperature, min_p, top_k, top_p. Noise is keyed by (seed, position), never by call count, so a
    replay draws the same token.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    min_p: float = 0.0
    """Tokens less likely than min_p times the likeliest are left out; 0 is off."""
    repetition_penalty: float = 1.0
    """Divides positive, multiplies negative logits of tokens in prompt or answer."""
    presence_penalty: float = 0.0
    """Subtracted once from tokens in the answer."""
    frequency_penalty: float = 0.0
    """Subtracted for each time a token is in the answer."""
    logit_bias: dict[int, float] = {}
    stop_tokens: tuple[int, ...] = ()
    """Tokens that end the answer, forbidden until `min_tokens` were drawn."""
    min_tokens: int = 0
    grammar: str = ""
    """In llguidance's serialised form; the answer has to follow it. Empty for none."""
    logprobs: int | None = None
    """How many of the likeliest tokens to report with each drawn one; None for no report. Of the
    model's own distribution, before bias, penalties and temperature."""

    @property
    def needs_history(self) -> bool:
        """Whether drawing depends on the tokens before."""
        penalties = (self.repetition_penalty - 1, self.presence_penalty, self.frequency_penalty)
        return any(penalties) or bool(self.grammar or self.min_tokens)


class Admit(msgspec.Struct, frozen=True, array_like=True):
    """What a rank has to know of a sequence that is new to it."""

    sampling: Sampling
    prompt_length: int = 0
    """Tokens of the prompt proper: what follows in `history` and in the rows is the answer."""
    history: tuple[int, ...] = ()
    """Prompt and answer so far, where `sampling.needs_history`; else empty."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One sequence's share of a step: `tokens` at positions start .. start+len(tokens)-1."""

    seq: int
    tokens: list[int]
    start: int
    new_blocks: list[int]
    """Block ids appended to the sequence's block table before this step."""
    sample: bool
    """Whether the last token's logits are sampled (false inside a chunked prefill)."""
    admit: Admit | None = None
    """Present on the sequence's first row: the rank creates its mirror."""
    targets: tuple[int, ...] = ()
    """Where the prompt itself is to be scored: the token that follows each of `tokens`, as far as
    it is known."""


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


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """The weights are in memory, and this is left for keys and values."""

    machine: str
    """Ranks with the same one share their memory."""
    available_bytes: int
    """Free on that machine now, less the floor that is to stay free."""
    block_bytes: int
    """What one KV block takes on this rank."""
    workspace_bytes: int
    """What this rank will need beside KV once it computes."""


class Fit(msgspec.Struct, frozen=True, tag="fit"):
    kv_blocks: int
    brief: bool = False
    """Whether a short warm-up will do: the launch is not new, and somebody waits."""


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
    """What carries collectives: `shm`, `tcp` or `gloo`, two with a `+` where groups differ, or
    `none` for a single rank."""


class Timings(msgspec.Struct, frozen=True, array_like=True):
    """Seconds a rank spent on one step."""

    total: float
    compute: float
    communicate: float
    """Inside collectives, the wait for slower ranks included."""
    idle: float = 0.0
    """Between the end of the step before and the arrival of this one."""
    pipeline: float = 0.0
    """Of `communicate`: waiting for the stage before, and sending to the next."""


class TokenLogprobs(msgspec.Struct, frozen=True, array_like=True):
    """Natural logarithms of probabilities at one position."""

    token: int
    logprob: float
    rank: int
    """1 for the likeliest token."""
    top: tuple[tuple[int, float], ...] = ()
    """The likeliest tokens, best first; equal ones by id."""


class Result(msgspec.Struct, frozen=True, tag="result"):
    """From the output rank (`plan.output_rank`): one token per sampled row, in row order."""

    n: int
    tokens: list[int]
    failed: list[int]
    """Sequences whose logits were not finite, or those in `reasons`; only these requests fail.
    Their places in `tokens` mean nothing."""
    timings: Timings
    logprobs: tuple[TokenLogprobs | None, ...] = ()
    """Beside `tokens`, None where none were asked for; empty when nobody asked."""
    scores: dict[int, tuple[TokenLogprobs, ...]] = {}
    """By sequence: of the row's `targets`, with as many of the likeliest as `sampling.logprobs`."""
    reasons: dict[int, str] = {}
    """By sequence that failed for another reason than its numbers: a sentence in English."""


class StepDone(msgspec.Struct, frozen=True, tag="done"):
    n: int
    timings: Timings


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    reason: Said


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    pass


class Activity(msgspec.Struct, frozen=True, array_like=True):
    """What a rank is at, and for how long."""

    doing: Doing = ""
    layer: int | None = None
    """The model's layer, counted from 0; None outside of layers."""
    seconds: float = 0.0


class Pong(msgspec.Struct, frozen=True, tag="pong"):
    phase: Phase
    n: int
    """Last step begun; -1 before the first."""
    activity: Activity = Activity()
    expert_tokens: tuple[int, ...] = ()
    """By expert: tokens it computed since the epoch began, over this stage's layers. Empty without
    experts, and but for the first rank of each stage."""


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown"):
    pass


FromRank = Hello | Meeting | Progress | Loaded | Ready | Result | StepDone | Failed | Pong
ToRank = Welcome | Join | Fit | Step | Ping | Shutdown

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
