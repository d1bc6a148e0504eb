"""What a head says about itself, as samples. Pure."""

from collections.abc import Iterable

from engine.errors import gettext_noop as _
from engine.protocol.stats import EngineStats, RankStats
from monitoring.metrics import (
    BUBBLE,
    COMMUNICATE_SECONDS,
    COMMUNICATE_SHARE,
    INTER_TOKEN_LATENCY,
    KV_USAGE,
    PROGRESS_AGE,
    REQUESTS_RUNNING,
    REQUESTS_WAITING,
    STEP_SECONDS,
    TIME_TO_FIRST_TOKEN,
    TOKENS_PER_SECOND,
    Metric,
)
from monitoring.samples import Kind, Sample, unavailable

SOURCE = "engine head"
ENGINE_METRICS = (
    TOKENS_PER_SECOND,
    TIME_TO_FIRST_TOKEN,
    INTER_TOKEN_LATENCY,
    REQUESTS_RUNNING,
    REQUESTS_WAITING,
    KV_USAGE,
    PROGRESS_AGE,
)


def silent_samples(launch: str, reason: str) -> list[Sample]:
    """A head that did not answer: nothing is known, and old numbers are not repeated."""
    subject = f"launch:{launch}"
    return [
        unavailable(metric, reason, source=SOURCE, scope="engine", subject=subject)
        for metric in ENGINE_METRICS
    ]


def engine_samples(stats: EngineStats, stalled_for: float) -> list[Sample]:
    """`stalled_for`: seconds that work has been in hand without progress."""
    idle = _("Nothing was generated in the last second.")
    quiet = _("No request was answered in the last 30 s.")
    subject = f"launch:{stats.launch}"

    def value(metric: Metric, number: float | None, reason: str, kind: Kind = "measured") -> Sample:
        return _sample(metric, number, subject, reason, kind)

    return [
        value(TOKENS_PER_SECOND, stats.tokens_per_second, idle),
        value(TIME_TO_FIRST_TOKEN, stats.ttft_seconds, quiet),
        value(INTER_TOKEN_LATENCY, stats.itl_seconds, quiet),
        value(REQUESTS_RUNNING, stats.running, ""),
        value(REQUESTS_WAITING, stats.waiting, ""),
        value(KV_USAGE, _kv_usage(stats), _("The head has no KV cache yet."), "derived"),
        value(PROGRESS_AGE, stalled_for, "", "derived"),
        *_rank_samples(subject, stats.ranks),
    ]


def _kv_usage(stats: EngineStats) -> float | None:
    if not stats.kv_blocks_total:
        return None
    return stats.kv_blocks_used / stats.kv_blocks_total


def _rank_samples(subject: str, ranks: Iterable[RankStats]) -> Iterable[Sample]:
    for rank in ranks:
        reason = (
            _("No step ran in the last second.")
            if rank.connected
            else _("The rank is not connected to its head.")
        )
        own = f"{subject}:rank{rank.rank}"
        yield _sample(STEP_SECONDS, rank.step_seconds, own, reason)
        yield _sample(COMMUNICATE_SECONDS, rank.communicate_seconds, own, reason)
        yield _sample(COMMUNICATE_SHARE, _communicate_share(rank), own, reason, "derived")
        yield _sample(BUBBLE, rank.bubble, own, reason, "derived")


def _communicate_share(rank: RankStats) -> float | None:
    if rank.communicate_seconds is None or not rank.step_seconds:
        return None
    return rank.communicate_seconds / rank.step_seconds


def _sample(
    metric: Metric, value: float | None, subject: str, reason: str, kind: Kind = "measured"
) -> Sample:
    if value is None:
        return unavailable(metric, reason, source=SOURCE, scope="engine", subject=subject)
    return Sample(metric.name, float(value), metric.unit, SOURCE, kind, "engine", subject)
