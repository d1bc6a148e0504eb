"""What a head says about itself, as samples. Pure."""

from collections.abc import Iterable, Iterator

from engine.errors import gettext_noop as _
from engine.protocol.stats import EngineStats, HistogramStats, RankStats
from monitoring.metrics import (
    BATCH_CAP,
    BATCH_SIZE,
    BUBBLE,
    CACHED_TOKENS,
    COMMUNICATE_SECONDS,
    COMMUNICATE_SHARE,
    ENGINE_BUBBLE,
    ENGINE_BUSY,
    ENGINE_RESTARTS,
    EXPERT_TOKENS,
    FIRST_TOKEN_BUCKET,
    FIRST_TOKEN_SUM,
    GENERATED_TOKENS,
    INTER_TOKEN_BUCKET,
    INTER_TOKEN_LATENCY,
    INTER_TOKEN_SUM,
    KV_USAGE,
    PREEMPTIONS,
    PREFIX_HITS,
    PROGRESS_AGE,
    PROMPT_TOKENS,
    QUEUE_BUCKET,
    QUEUE_SUM,
    RANK_KV,
    RANK_WEIGHTS,
    REQUEST_BUCKET,
    REQUEST_SUM,
    REQUESTS_FINISHED,
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
    REQUESTS_FINISHED,
    PROMPT_TOKENS,
    GENERATED_TOKENS,
    CACHED_TOKENS,
    PREFIX_HITS,
    KV_USAGE,
    BATCH_SIZE,
    BATCH_CAP,
    PREEMPTIONS,
    ENGINE_BUSY,
    ENGINE_BUBBLE,
    ENGINE_RESTARTS,
    EXPERT_TOKENS,
    FIRST_TOKEN_BUCKET,
    FIRST_TOKEN_SUM,
    INTER_TOKEN_BUCKET,
    INTER_TOKEN_SUM,
    QUEUE_BUCKET,
    QUEUE_SUM,
    REQUEST_BUCKET,
    REQUEST_SUM,
    PROGRESS_AGE,
)

UNTOLD = _("This engine does not tell it.")
IDLE = _("Nothing was generated in the last second.")
QUIET = _("No request was answered in the last 30 s.")
STEPLESS = _("No step ran in the last second.")


def silent_samples(launch: str, reason: str) -> list[Sample]:
    """A head that did not answer: nothing is known, and old numbers are not repeated."""
    subject = f"launch:{launch}"
    return [
        unavailable(metric, reason, source=SOURCE, scope="engine", subject=subject)
        for metric in ENGINE_METRICS
    ]


def engine_samples(stats: EngineStats, stalled_for: float) -> list[Sample]:
    """`stalled_for`: seconds that work has been in hand without progress."""
    subject = f"launch:{stats.launch}"
    return [
        *_now(subject, stats, stalled_for),
        *_totals(subject, stats),
        *_bars(subject, FIRST_TOKEN_BUCKET, FIRST_TOKEN_SUM, stats.first_token),
        *_bars(subject, INTER_TOKEN_BUCKET, INTER_TOKEN_SUM, stats.inter_token),
        *_bars(subject, QUEUE_BUCKET, QUEUE_SUM, stats.queue),
        *_bars(subject, REQUEST_BUCKET, REQUEST_SUM, stats.duration),
        *_rank_samples(subject, stats.ranks),
    ]


def _now(subject: str, stats: EngineStats, stalled_for: float) -> Iterator[Sample]:
    no_cache = _("The head has no KV cache yet.")
    rows: tuple[tuple[Metric, float | None, str, Kind], ...] = (
        (TOKENS_PER_SECOND, stats.tokens_per_second, IDLE, "measured"),
        (TIME_TO_FIRST_TOKEN, stats.ttft_seconds, QUIET, "measured"),
        (INTER_TOKEN_LATENCY, stats.itl_seconds, QUIET, "measured"),
        (REQUESTS_RUNNING, stats.running, "", "measured"),
        (REQUESTS_WAITING, stats.waiting, "", "measured"),
        (KV_USAGE, _kv_usage(stats), no_cache, "derived"),
        (PREFIX_HITS, stats.prefix_hits, QUIET, "derived"),
        (BATCH_SIZE, stats.batch_rows, STEPLESS, "measured"),
        (BATCH_CAP, stats.batch_cap, UNTOLD, "measured"),
        (ENGINE_BUSY, stats.busy, UNTOLD, "measured"),
        (ENGINE_BUBBLE, stats.bubble, STEPLESS, "derived"),
        (PROGRESS_AGE, stalled_for, "", "derived"),
    )
    for metric, value, reason, kind in rows:
        yield _sample(metric, value, subject, reason, kind)


def _totals(subject: str, stats: EngineStats) -> Iterator[Sample]:
    for metric, value in (
        (PROMPT_TOKENS, stats.prompt_tokens),
        (GENERATED_TOKENS, stats.generated_tokens),
        (CACHED_TOKENS, stats.cached_tokens),
        (PREEMPTIONS, stats.preemptions),
        (ENGINE_RESTARTS, stats.epoch),
    ):
        yield _sample(metric, value, subject, "")
    yield from _labelled(REQUESTS_FINISHED, stats.endings, subject, UNTOLD)
    experts = {str(expert): tokens for expert, tokens in enumerate(stats.expert_tokens)}
    reason = _("The model has no experts, or none has computed a token yet.")
    yield from _labelled(EXPERT_TOKENS, experts, subject, reason)


def _bars(
    subject: str, bar: Metric, total: Metric, histogram: HistogramStats | None
) -> Iterator[Sample]:
    if histogram is None:
        yield _sample(bar, None, subject, UNTOLD)
        yield _sample(total, None, subject, UNTOLD)
        return
    bounds = [*(f"le={bound:g}" for bound in histogram.bounds), "le=+Inf"]
    for label, count in zip(bounds, histogram.counts, strict=True):
        yield _sample(bar, count, subject, "", label=label)
    yield _sample(total, histogram.sum, subject, "")


def _labelled(
    metric: Metric, values: dict[str, int], subject: str, reason: str
) -> Iterator[Sample]:
    for label, value in values.items():
        yield _sample(metric, value, subject, "", label=label)
    if not values:
        yield _sample(metric, None, subject, reason)


def _kv_usage(stats: EngineStats) -> float | None:
    if not stats.kv_blocks_total:
        return None
    return stats.kv_blocks_used / stats.kv_blocks_total


def _rank_samples(subject: str, ranks: Iterable[RankStats]) -> Iterator[Sample]:
    for rank in ranks:
        reason = STEPLESS if rank.connected else _("The rank is not connected to its head.")
        empty = _("The rank has not loaded its share of the model yet.")
        own = f"{subject}:rank{rank.rank}"
        yield _sample(STEP_SECONDS, rank.step_seconds, own, reason)
        yield _sample(COMMUNICATE_SECONDS, rank.communicate_seconds, own, reason)
        yield _sample(COMMUNICATE_SHARE, _communicate_share(rank), own, reason, "derived")
        yield _sample(BUBBLE, rank.bubble, own, reason, "derived")
        yield _sample(RANK_WEIGHTS, rank.weight_bytes, own, empty)
        yield _sample(RANK_KV, rank.kv_bytes, own, empty)


def _communicate_share(rank: RankStats) -> float | None:
    if rank.communicate_seconds is None or not rank.step_seconds:
        return None
    return rank.communicate_seconds / rank.step_seconds


def _sample(
    metric: Metric,
    value: float | None,
    subject: str,
    reason: str,
    kind: Kind = "measured",
    label: str = "",
) -> Sample:
    if value is None:
        return unavailable(metric, reason, source=SOURCE, scope="engine", subject=subject)
    return Sample(
        metric.name, float(value), metric.unit, SOURCE, kind, "engine", subject, "", label
    )
