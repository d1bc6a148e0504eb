"""What a head says becomes samples: labelled, absent with a reason, never an invented 0."""

from engine.agent.engine_samples import ENGINE_METRICS, engine_samples
from engine.protocol.stats import EngineStats, HistogramStats, RankStats
from monitoring.metrics import METRICS
from monitoring.samples import Sample, series_key

TOLD = EngineStats(
    launch="l1",
    status="ready",
    ranks=[RankStats(rank=0, phase="idle", connected=True, weight_bytes=100, kv_bytes=50)],
    batch_cap=8,
    prompt_tokens=40,
    generated_tokens=7,
    cached_tokens=16,
    preemptions=2,
    epoch=1,
    endings={"stop": 3, "length": 1, "abort": 0, "error": 0},
    first_token=HistogramStats((0.001, 0.5), (0, 2, 3), 4.5),
    inter_token=HistogramStats((0.01,), (5, 6), 0.25),
    queue=HistogramStats((1.0,), (3, 3), 0.5),
    duration=HistogramStats((1.0, 600.0), (1, 3, 4), 700.0),
    batch_rows=2.5,
    busy=0.75,
    prefix_hits=0.4,
    bubble=0.1,
    expert_tokens=(5, 0, 9),
)


def by_key(stats: EngineStats) -> dict[tuple[str, str], Sample]:
    samples = engine_samples(stats, 0.0)
    found = {(s.subject, series_key(s.metric, s.scope, s.label)): s for s in samples}
    assert len(found) == len(samples), "no series is told twice"
    return found


def test_totals_and_histograms_are_told_with_their_labels() -> None:
    found = {key: s.value for (subject, key), s in by_key(TOLD).items() if subject == "launch:l1"}
    assert found["prompt_tokens_total@engine"] == 40
    assert found["requests_finished_total@engine{stop}"] == 3
    assert found["requests_finished_total@engine{error}"] == 0
    assert found["time_to_first_token_seconds_bucket@engine{le=0.001}"] == 0
    assert found["time_to_first_token_seconds_bucket@engine{le=0.5}"] == 2
    assert found["time_to_first_token_seconds_bucket@engine{le=+Inf}"] == 3
    assert found["time_to_first_token_seconds_sum@engine"] == 4.5
    assert found["request_duration_seconds_bucket@engine{le=600}"] == 3
    assert found["expert_tokens_total@engine{1}"] == 0
    assert found["batch_size_rows@engine"] == 2.5
    assert found["engine_epochs_total@engine"] == 1


def test_a_rank_tells_what_it_holds() -> None:
    found = by_key(TOLD)
    assert found["launch:l1:rank0", "rank_weight_bytes@engine"].value == 100
    assert found["launch:l1:rank0", "rank_kv_bytes@engine"].value == 50


def test_an_engine_that_tells_nothing_has_a_reason_for_each() -> None:
    quiet = EngineStats(
        launch="l1", status="starting", ranks=[RankStats(rank=0, phase="starting", connected=False)]
    )
    for (_subject, key), sample in by_key(quiet).items():
        assert (sample.value is None) == (sample.kind == "unavailable")
        assert bool(sample.reason) == (sample.value is None), key
        assert sample.reason.endswith(".") or sample.value is not None
    absent = {s.metric for s in by_key(quiet).values() if s.value is None}
    assert {"batch_size_rows", "engine_busy_ratio", "expert_tokens_total"} <= absent
    assert {"queue_seconds_bucket", "queue_seconds_sum", "rank_weight_bytes"} <= absent


def test_every_metric_is_in_the_table_and_told() -> None:
    told = {sample.metric for sample in by_key(TOLD).values()}
    assert told <= set(METRICS)
    assert {metric.name for metric in ENGINE_METRICS} <= told
