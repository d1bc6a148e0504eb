"""What a head says about itself: `GET /stats` as JSON, once a second to the agent."""

from typing import Literal

import msgspec

from engine.errors import Said
from engine.protocol.steps import Phase

HeadStatus = Literal["starting", "loading", "ready", "failed"]


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
    tokens_per_second: float | None = None
    """Generated tokens over the last second; None while nothing runs."""
