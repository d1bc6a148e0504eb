"""What an engine says about itself."""

from collections.abc import Sequence
from itertools import zip_longest
from statistics import fmean
from typing import TYPE_CHECKING

from engine.config import BLOCK_SIZE
from engine.head.peer import RankPeer
from engine.protocol.stats import EngineStats, RankStats

if TYPE_CHECKING:
    from engine.head.engine import HeadEngine


def engine_stats(engine: "HeadEngine", peers: Sequence[RankPeer]) -> EngineStats:
    scheduler, counters, pool = engine.scheduler, engine.probe.counters, engine.scheduler.pool
    recovery, ranks = engine.recovery, [peer.stats() for peer in peers]
    running = max(0, scheduler.running - engine.probe.singing)
    meter = engine.meter
    return EngineStats(
        launch=engine.spec.launch,
        status=engine.status,
        detail=engine.detail,
        ranks=ranks,
        running=running,
        waiting=scheduler.waiting,
        batch_cap=scheduler.cap.rows,
        steps=counters.steps,
        prompt_tokens=counters.prompt_tokens,
        generated_tokens=counters.generated_tokens,
        cached_tokens=counters.cached_tokens,
        preemptions=counters.preemptions,
        finished=counters.finished,
        aborted=counters.aborted,
        kv_blocks_total=pool.size,
        kv_blocks_used=pool.used,
        kv_blocks_cached=pool.cached,
        ttft_seconds=meter.ttft.median(),
        itl_seconds=meter.itl.median(),
        epoch=recovery.epoch,
        last_fault=recovery.fault,
        recovery_seconds=recovery.seconds,
        resumed=engine.readers.resumed,
        bubble=mean_bubble(ranks),
        expert_tokens=expert_tokens(peers),
        kv_tokens_wanted=scheduler.config.num_kv_blocks * BLOCK_SIZE,
        canary_seconds=engine.probe.seconds,
        tokens_per_second=meter.tokens.total() if running else None,
        endings=counters.endings,
        first_token=meter.first_token.stats(),
        inter_token=meter.inter_token.stats(),
        queue=meter.queue.stats(),
        duration=meter.duration.stats(),
        batch_rows=meter.rows.mean(),
        busy=meter.busy.share(),
        prefix_hits=meter.prefix_hits,
    )


def mean_bubble(ranks: Sequence[RankStats]) -> float | None:
    bubbles = [rank.bubble for rank in ranks if rank.bubble is not None]
    return fmean(bubbles) if bubbles else None


def expert_tokens(peers: Sequence[RankPeer]) -> tuple[int, ...]:
    """By expert, over all stages; each one's first rank counts for it."""
    return tuple(map(sum, zip_longest(*(peer.expert_tokens for peer in peers), fillvalue=0)))
