"""What a server that others wrote says in its own `/metrics`, as the samples of our own head."""

from collections.abc import Mapping

from engine.agent.engine_samples import ENGINE_METRICS, IDLE, UNTOLD
from engine.drivers.base import Named
from engine.drivers.exposition import read_exposition
from monitoring.metrics import GENERATED_TOKENS, METRICS, TOKENS_PER_SECOND, Metric
from monitoring.samples import Sample, measured, unavailable


class ForeignMetrics:
    """One server, read about once a second."""

    def __init__(self, names: Mapping[str, Named], launch: str, source: str) -> None:
        """`source` is what a reader should know it by, such as `vLLM /metrics`."""
        self._names = names
        self._subject = f"launch:{launch}"
        self._source = source
        self._before: tuple[float, float] | None = None
        """When it was last read, and the tokens generated until then."""

    def read(self, text: str, at: float) -> list[Sample]:
        """`at` on a monotonic clock. Raises NoAnswer when the text is none of Prometheus."""
        found = read_exposition(text, self._names)
        samples = [self._measured(METRICS[f.metric], f.value, f.label) for f in found]
        told = {sample.metric for sample in samples}
        totals = [f.value for f in found if f.metric == GENERATED_TOKENS.name]
        samples.append(self._rate(sum(totals) if totals else None, at))
        told.add(TOKENS_PER_SECOND.name)
        samples += [
            unavailable(metric, UNTOLD, source=self._source, scope="engine", subject=self._subject)
            for metric in ENGINE_METRICS
            if metric.name not in told
        ]
        return samples

    def _rate(self, total: float | None, at: float) -> Sample:
        """From the counter: a throughput that a server averages itself stands still when idle."""
        before, self._before = self._before, None if total is None else (at, total)
        grown = 0.0 if total is None or before is None else total - before[1]
        if before is None or at <= before[0] or grown <= 0:
            reason = UNTOLD if total is None else IDLE
            return unavailable(
                TOKENS_PER_SECOND,
                reason,
                source=self._source,
                scope="engine",
                subject=self._subject,
            )
        rate = grown / (at - before[0])
        return measured(
            TOKENS_PER_SECOND,
            rate,
            source=self._source,
            scope="engine",
            subject=self._subject,
            kind="derived",
        )

    def _measured(self, metric: Metric, value: float, label: str) -> Sample:
        return measured(
            metric,
            value,
            source=self._source,
            scope="engine",
            subject=self._subject,
            label=label,
        )
