"""What a head says about itself: `GET /stats` as JSON, once a second to the agent."""

from typing import Literal

import msgspec

from engine.errors import Said
from engine.protocol.steps import Doing, Phase

HeadStatus = Literal["starting", "loading", "ready", "recovering", "failed"]
"""`recovering`: an epoch ended with a fault, the next is on its way, open answers wait."""


class RankStats(msgspec.Struct, frozen=True, kw_only=True):
    rank: int
    phase: Phase
    connected: bool
    pid: int | None = None
    progress: float | None = None
    """0..1 while loading."""
    detail: str = ""
    """A fixed sentence that can be translated, or a name."""
    step: int = -1
    """Last step begun; -1 before the first."""
    last_seen_seconds: float | None = None
    """Age of its last message."""
    weight_bytes: int | None = None
    kv_bytes: int | None = None
    kv_heads: int | None = None
    first_layer: int | None = None
    last_layer: int | None = None
    kernel: str = ""
    transport: str = ""
    step_seconds: float | None = None
    """Mean over the last second's steps; None when there was none."""
    compute_seconds: float | None = None
    communicate_seconds: float | None = None
    doing: Doing = ""
    layer: int | None = None
    doing_seconds: float | None = None
    """How long it has been at that."""
    bubble: float | None = None
    """Share of the last second's working time that it spent without work; None without any."""


class HistogramStats(msgspec.Struct, frozen=True, array_like=True):
    """Everything measured since the launch: how many values were at most each bound."""

    bounds: tuple[float, ...]
    """Upper bounds, growing; the last bar, which has no bound, is not among them."""
    counts: tuple[int, ...]
    """Cumulative, one more than bounds; the last counts everything."""
    sum: float


class EngineStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counters are totals since the launch; None means there is nothing to report yet."""

    launch: str
    status: HeadStatus
    detail: Said = Said()
    ranks: list[RankStats] = []
    running: int = 0
    waiting: int = 0
    batch_cap: int | None = None
    """Most answers that advance in one step now; None from an engine that does not tell."""
    steps: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens found in the prefix cache."""
    preemptions: int = 0
    finished: int = 0
    aborted: int = 0
    kv_blocks_total: int = 0
    kv_blocks_used: int = 0
    """Blocks held by live sequences."""
    kv_blocks_cached: int = 0
    """Free blocks that still hold a reusable prefix."""
    ttft_seconds: float | None = None
    """Median time to first token over the requests first answered in the last 30 s."""
    itl_seconds: float | None = None
    """Median inter-token latency over the last 30 s."""
    epoch: int = 0
    """Times the ranks were started anew under this head."""
    last_fault: Said = Said()
    """Why the last epoch ended; empty when none did."""
    recovery_seconds: float | None = None
    """From the last fault to the first step after it; None when there was none."""
    resumed: int = 0
    """Answers that went on after a fault."""
    bubble: float | None = None
    """Mean over the ranks; None while nothing runs."""
    expert_tokens: tuple[int, ...] = ()
    """By expert, since the epoch began; empty without experts."""
    kv_tokens_wanted: int | None = None
    """What the settings allow; more than the pool holds where memory was short."""
    canary_seconds: float | None = None
    """What the last token took that was asked for only to see whether it comes."""
    tokens_per_second: float | None = None
    """Generated tokens over the last second; None while nothing runs."""
    endings: dict[str, int] = {}
    """Requests ended since the launch, by reason: `stop`, `length`, `abort`, `error`. Empty from
    an engine that does not tell."""
    first_token: HistogramStats | None = None
    """Seconds from a request's arrival to its first token. None from an engine that does not tell,
    as with the next three."""
    inter_token: HistogramStats | None = None
    """Seconds between two tokens of one answer."""
    queue: HistogramStats | None = None
    """Seconds that a request waited before it was computed for the first time."""
    duration: HistogramStats | None = None
    """Seconds from a request's arrival to its last token, of those that ended by themselves."""
    batch_rows: float | None = None
    """Mean rows of the steps sent in the last second; None when there was none."""
    busy: float | None = None
    """Share of the last second in which a step was on its way; None from an engine that does not
    tell."""
    prefix_hits: float | None = None
    """Of the prompt tokens of the requests first answered in the last 30 s, the share found in
    the prefix cache; None when there was none."""
