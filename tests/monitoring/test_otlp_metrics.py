"""Readings reach an OpenTelemetry collector: what is known, under the names it knows, no zeros."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from dashboard.jobs.tasks import push_metrics
from monitoring.export import otlp
from monitoring.export.otlp import readings
from monitoring.export.otlp.names import CONVENTIONS, own_name, unit_of
from monitoring.metrics import METRICS
from tests.monitoring.exporting import box_samples, fill, fill_absent, fill_busy
from tests.peers.otlp_collector import Collector, collector, said


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    readings._exporter.cache_clear()
    readings.pusher.cache_clear()
    with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", kept.address)
        yield kept
        readings._exporter().shutdown()
    readings._exporter.cache_clear()
    readings.pusher.cache_clear()


def value(metric: Metric) -> float:
    (point,) = (metric.gauge if metric.HasField("gauge") else metric.sum).data_points
    return float(point.as_double)


@pytest.mark.django_db
def test_gauges_and_counters_arrive_with_their_units_and_where_they_are_from(
    kept: Collector,
) -> None:
    fill(box_samples())
    push_metrics()
    power, energy = kept.metrics["tandem.power"], kept.metrics["tandem.energy"]
    assert (value(power), power.unit) == (310.0, "W")
    assert (value(energy), energy.unit) == (5e6, "J")
    assert energy.sum.is_monotonic
    (point,) = power.gauge.data_points
    assert said(list(point.attributes)) == {
        "host.name": "box-1",
        "tandem.scope": "wall",
        "tandem.source": "pdu",
        "tandem.kind": "measured",
    }
    assert kept.service == "tandem"
    assert value(kept.metrics["hw.fan.speed"]) == 2100.0


@pytest.mark.django_db
def test_latencies_arrive_as_histograms_under_their_conventional_names(kept: Collector) -> None:
    fill_busy()
    push_metrics()
    metric = kept.metrics["gen_ai.server.time_to_first_token"]
    (point,) = metric.histogram.data_points
    assert list(point.explicit_bounds) == [0.001, 0.25, 1.0]
    assert list(point.bucket_counts) == [0, 7, 2, 1]
    assert (point.count, point.sum) == (10, 3.5)
    assert not point.HasField("max")
    attributes = said(list(point.attributes))
    assert attributes["gen_ai.request.model"] == "smol"
    assert attributes["gen_ai.provider.name"] == "tandem"
    assert "tandem.time_to_first_token" in kept.metrics


@pytest.mark.django_db
def test_an_absent_value_is_not_sent(kept: Collector) -> None:
    fill_absent()
    push_metrics()
    assert kept.raw == []


@pytest.mark.django_db
def test_a_counter_that_began_anew_says_so(kept: Collector) -> None:
    pusher = readings.Pusher()
    page = readings._Page(pusher._since)
    for at, number in ((10, 5.0), (20, 9.0), (30, 2.0), (40, 4.0)):
        page._add("prompt_tokens_total", {}, number, at)
    starts = [point.start_time_unix_nano for point in page._numbers["prompt_tokens_total"]]
    assert starts == [10, 10, 30, 30]


def test_bars_that_fall_or_are_beyond_reason_keep_nothing_else_from_being_sent() -> None:
    page = readings._Page({})
    page._add_bars("queue_seconds", {}, {"0.1": 3.0, "0.5": 2.0, "+Inf": 4.0, "sum": 1.0}, 10)
    page._add_bars("prefill_seconds", {}, {"0.1": 1.0, "+Inf": 1e100, "sum": 1.0}, 10)
    (point,) = page._bars["queue_seconds"]
    assert (point.bucket_counts, point.explicit_bounds, point.count) == ([3, 0, 1], [0.1, 0.5], 4)
    assert "prefill_seconds" not in page._bars


@pytest.mark.parametrize(
    ("environment", "on"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://collector:4318/v1/metrics"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_METRICS_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_decide(environment: dict[str, str], on: bool) -> None:
    assert otlp.wanted("metrics", environment) is on


def test_the_interval_is_the_standard_one() -> None:
    assert otlp.interval_seconds({}) == 60
    assert otlp.interval_seconds({"OTEL_METRIC_EXPORT_INTERVAL": "5000"}) == 5
    assert otlp.interval_seconds({"OTEL_METRIC_EXPORT_INTERVAL": "soon"}) == 60


def test_names_do_not_collide_and_have_units() -> None:
    assert set(CONVENTIONS) <= set(METRICS)
    assert own_name("kv_cache_usage_ratio") == "tandem.kv_cache_usage"
    assert unit_of("prompt_tokens_total") == "{token}"
    assert unit_of("power_watts") == "W"


def test_off_the_sdk_is_not_even_imported() -> None:
    program = (
        "import sys, dashboard.celery, dashboard.gateway.trace; "
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
