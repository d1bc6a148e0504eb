"""Prometheus text: our own names, and the `vllm:` aliases that public boards expect."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from engine.head.engine import HeadEngine
from engine.head.windows import Histogram


class _Collector:
    """Reads the engine when scraped. An absent value has no sample."""

    def __init__(self, engine: HeadEngine) -> None:
        self._engine = engine
        self._model = engine.spec.served_name

    def collect(self) -> Iterator[Metric]:
        yield from self._gauges()
        yield from self._counters()
        meter = self._engine.meter
        for prefix in ("tandem_", "vllm:"):
            yield self._histogram(
                f"{prefix}time_to_first_token_seconds",
                "From a request's arrival to its first token.",
                meter.first_token,
            )
            yield self._histogram(
                f"{prefix}inter_token_latency_seconds",
                "Between two tokens of one answer.",
                meter.inter_token,
            )
        queue, duration = "Before a request was computed.", "From arrival to the last token."
        for name, text, histogram in (
            ("tandem_queue_seconds", queue, meter.queue),
            ("vllm:request_queue_time_seconds", queue, meter.queue),
            ("tandem_request_duration_seconds", duration, meter.duration),
            ("vllm:e2e_request_latency_seconds", duration, meter.duration),
        ):
            yield self._histogram(name, text, histogram)

    def _gauges(self) -> Iterator[Metric]:
        stats = self._engine.stats()
        usage = stats.kv_blocks_used / stats.kv_blocks_total
        running, waiting = "Requests that hold KV blocks.", "Requests in the queue."
        values: list[tuple[str, str, float | None]] = [
            ("tandem_ready", "1 while requests are accepted.", float(stats.status == "ready")),
            ("tandem_requests_running", running, stats.running),
            ("vllm:num_requests_running", running, stats.running),
            ("tandem_requests_waiting", waiting, stats.waiting),
            ("vllm:num_requests_waiting", waiting, stats.waiting),
            ("tandem_batch_cap", "Most answers that advance in one step.", stats.batch_cap),
            ("tandem_kv_cache_usage_ratio", "KV blocks held by live sequences.", usage),
            ("vllm:kv_cache_usage_perc", "KV blocks held by live sequences, 0 to 1.", usage),
            (
                "tandem_generation_tokens_per_second",
                "Generated over the last second.",
                stats.tokens_per_second,
            ),
            (
                "tandem_recovery_seconds",
                "From the last fault to work again.",
                stats.recovery_seconds,
            ),
            ("tandem_batch_size_rows", "Mean of the last second's steps.", stats.batch_rows),
            ("tandem_engine_busy_ratio", "Of the last second.", stats.busy),
            ("tandem_prefix_hit_ratio", "Over the last 30 s.", stats.prefix_hits),
            ("tandem_pipeline_bubble_ratio", "Ranks' time without work, mean.", stats.bubble),
            ("tandem_canary_seconds", "What the last canary token took.", stats.canary_seconds),
        ]
        for name, text, value in values:
            if value is not None:
                family = GaugeMetricFamily(name, text, labels=["model_name"])
                family.add_metric([self._model], value)
                yield family
        yield from self._rank_gauges()

    def _rank_gauges(self) -> Iterator[Metric]:
        parts = ("step", "compute", "communicate")
        families = {
            part: GaugeMetricFamily(
                f"tandem_rank_{part}_seconds",
                "Mean over the last second's steps.",
                labels=["model_name", "rank"],
            )
            for part in parts
        }
        for rank in self._engine.stats().ranks:
            for part in parts:
                seconds = getattr(rank, f"{part}_seconds")
                if seconds is not None:
                    families[part].add_metric([self._model, str(rank.rank)], seconds)
        yield from families.values()

    def _counters(self) -> Iterator[Metric]:
        counters, engine = self._engine.scheduler.counters, self._engine
        prompt, generated = "Prompt tokens admitted.", "Tokens generated."
        cached = "Prompt tokens found in the prefix cache."
        for name, text, value in (
            ("tandem_epochs", "Times the ranks were started anew.", engine.recovery.epoch),
            (
                "tandem_resumed_requests",
                "Answers that went on after a fault.",
                engine.readers.resumed,
            ),
            ("tandem_steps", "Steps sent to the ranks.", counters.steps),
            ("tandem_preemptions", "Sequences that gave up their blocks.", counters.preemptions),
            ("vllm:num_preemptions", "Sequences that gave up theirs.", counters.preemptions),
            ("tandem_prompt_tokens", prompt, counters.prompt_tokens),
            ("vllm:prompt_tokens", prompt, counters.prompt_tokens),
            ("tandem_generation_tokens", generated, counters.generated_tokens),
            ("vllm:generation_tokens", generated, counters.generated_tokens),
            ("tandem_prefix_cache_queries", prompt, counters.prompt_tokens),
            ("vllm:prefix_cache_queries", prompt, counters.prompt_tokens),
            ("tandem_prefix_cache_hits", cached, counters.cached_tokens),
            ("vllm:prefix_cache_hits", cached, counters.cached_tokens),
        ):
            family = CounterMetricFamily(name, text, labels=["model_name"])
            family.add_metric([self._model], value)
            yield family
        yield self._experts()
        yield self._endings("tandem_requests", ("stop", "length", "abort", "error"))
        yield self._endings("vllm:request_success", ("stop", "length"))

    def _experts(self) -> Metric:
        text = "Tokens that each expert computed since the ranks were started."
        labels = ["model_name", "expert"]
        family = CounterMetricFamily("tandem_expert_tokens", text, labels=labels)
        for expert, tokens in enumerate(self._engine.stats().expert_tokens):
            family.add_metric([self._model, str(expert)], tokens)
        return family

    def _endings(self, name: str, reasons: tuple[str, ...]) -> Metric:
        counts = self._engine.scheduler.counters.endings
        labels = ["model_name", "finished_reason"]
        family = CounterMetricFamily(name, "Requests ended, by reason.", labels=labels)
        for reason in reasons:
            family.add_metric([self._model, reason], counts[reason])
        return family

    def _histogram(self, name: str, text: str, histogram: Histogram) -> Metric:
        family = HistogramMetricFamily(name, text, labels=["model_name"])
        family.add_metric([self._model], histogram.cumulative(), histogram.sum)
        return family


def render_metrics(engine: HeadEngine) -> tuple[bytes, str]:
    """Exposition text and its content type."""
    registry = CollectorRegistry()
    registry.register(_Collector(engine))
    return generate_latest(registry), CONTENT_TYPE_LATEST
