"""A fleet to export, and the page read back."""

from collections.abc import Iterable

from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample as Exported

from engine.agent.engine_samples import engine_samples, silent_samples
from engine.protocol.stats import EngineStats, HistogramStats, RankStats
from monitoring import metrics as m
from monitoring.export.prometheus import render
from monitoring.samples import Sample, measured, unavailable
from monitoring.storage.store import store
from tests.monitoring.cast import NO_GPU, frame_of, launch, make_node, node_samples

BUSY = EngineStats(
    launch="abc",
    status="ready",
    ranks=[
        RankStats(
            rank=rank,
            phase="step",
            connected=True,
            weight_bytes=10**8,
            kv_bytes=10**7,
            step_seconds=0.02,
            communicate_seconds=0.005,
            bubble=0.1,
        )
        for rank in range(2)
    ],
    running=3,
    waiting=1,
    batch_cap=32,
    prompt_tokens=1000,
    generated_tokens=200,
    cached_tokens=640,
    kv_blocks_total=100,
    kv_blocks_used=25,
    ttft_seconds=0.12,
    itl_seconds=0.02,
    bubble=0.1,
    expert_tokens=(7, 5),
    tokens_per_second=40.0,
    endings={"stop": 8, "length": 2, "abort": 1, "error": 0},
    first_token=HistogramStats((0.001, 0.25, 1.0), (0, 7, 9, 10), 3.5),
    inter_token=HistogramStats((0.01, 0.1), (5, 190, 190), 4.25),
    queue=HistogramStats((0.5,), (10, 10), 0.5),
    duration=HistogramStats((1.0, 60.0), (2, 10, 10), 40.0),
    batch_rows=2.5,
    busy=0.75,
    prefix_hits=0.64,
)


def box_samples() -> list[Sample]:
    """What a box with meters says of itself."""
    return [
        *node_samples(),
        measured(m.TEMPERATURE, 41.5, source="hwmon", scope="host", label="board"),
        measured(m.FAN_SPEED, 2100.0, source="redfish", scope="host", label='fan "1"\\2'),
        measured(m.POWER, 310.0, source="pdu", scope="wall"),
        measured(m.ENERGY, 5e6, source="pdu", scope="wall"),
        measured(m.NOISE, 38.5, source="meter", scope="room", label="1 m"),
        measured(m.LINK_SPEED, 2e11, source="sysfs", scope="host", label="eth0"),
        measured(m.CLOCK_SKEW, -0.002, source="agent", scope="host"),
    ]


def absent_samples() -> list[Sample]:
    """Every metric there is, and none of them readable."""
    return [
        unavailable(metric, NO_GPU, source="test", scope="host") for metric in m.METRICS.values()
    ]


def fill(samples: Iterable[Sample], name: str = "box-1") -> None:
    """A node that says this now."""
    node = make_node(name)
    store([frame_of(node.pk, 1, timezone.now().timestamp(), list(samples))])


def fill_busy() -> None:
    """A box with an engine of two ranks at work."""
    node = make_node()
    launch("abc", [node, node])
    samples = [*box_samples(), *engine_samples(BUSY, 0.0)]
    store([frame_of(node.pk, 1, timezone.now().timestamp(), samples)])


def fill_absent() -> None:
    """A box and an engine of which nothing can be read."""
    node = make_node()
    launch("abc", [node])
    samples = [*absent_samples(), *silent_samples("abc", "The head does not answer.")]
    store([frame_of(node.pk, 1, timezone.now().timestamp(), samples)])


def exported(*, aliases: bool = False) -> dict[str, Metric]:
    page = render(aliases=aliases).decode()
    return {family.name: family for family in text_string_to_metric_families(page)}


def only(family: Metric) -> Exported:
    (sample,) = family.samples
    return sample
