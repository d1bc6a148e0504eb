"""What each kind of rule sees."""

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard.choices import NodeStatus
from dashboard.models import Deployment, Node
from monitoring import metrics as m
from monitoring.alerts.builtin import BUILT_IN
from monitoring.alerts.fleet import NodeFacts
from monitoring.alerts.kinds import KINDS
from monitoring.alerts.world import World
from monitoring.models import Rule, Usual
from monitoring.samples import Sample, measured
from monitoring.storage import series
from tests.monitoring.alert_cast import cpu, online, tell
from tests.monitoring.alert_kinds_cast import (
    LAUNCH,
    deployment,
    engine,
    gains,
    gpu,
    host,
    look,
    one,
    with_gpu,
)
from tests.monitoring.metered import keep, whole_minutes_ago

__all__ = ["deployment"]

pytestmark = pytest.mark.django_db


def test_a_metric_is_seen_once_for_each_of_its_series() -> None:
    told = [host(m.FAN_SPEED, rpm, label=f"fan{rpm}") for rpm in (900, 1200)]
    found = look("metric", (online(), told), metric=m.FAN_SPEED.name)
    assert [(s.series, s.observation.value) for s in found] == [
        ("fan_speed_rpm@host{fan900}", 900.0),
        ("fan_speed_rpm@host{fan1200}", 1200.0),
    ]


def test_a_rule_may_ask_for_one_label() -> None:
    told = [host(m.GPU_THROTTLED, 1.0, label=label) for label in ("power", "thermal")]
    [seen] = look("metric", (online(), told), metric=m.GPU_THROTTLED.name, label="thermal")
    assert seen.series == "gpu_throttled_ratio@host{thermal}"


def test_an_accelerator_is_its_nodes_trouble() -> None:
    node = with_gpu(online())
    [seen] = look("metric", (node, [gpu(m.GPU_HEALTH, 0.0)]), metric=m.GPU_HEALTH.name)
    assert (seen.topic, seen.node, seen.observation.value) == (f"{node.pk}/gpu:0", node.pk, 0.0)


def test_a_staged_firmware_is_a_reading_like_any_other() -> None:
    told = [host(m.FIRMWARE_STAGED, 1.0, label="BMC")]
    assert one("metric", (online(), told), metric=m.FIRMWARE_STAGED.name).value == 1.0


def test_a_counter_is_seen_by_what_it_grew(
    monkeypatch: pytest.MonkeyPatch, deployment: Deployment
) -> None:
    gains(monkeypatch, m.PREEMPTIONS, {"": 3.0})
    node = Node.objects.get()
    told = (node, [engine(m.PREEMPTIONS, 1000.0)])
    assert one("metric", told, metric=m.PREEMPTIONS.name).value == 3.0


def test_a_counter_that_was_not_read_has_no_growth(
    monkeypatch: pytest.MonkeyPatch, deployment: Deployment
) -> None:
    gains(monkeypatch, m.PREEMPTIONS, {})
    told = (Node.objects.get(), [engine(m.PREEMPTIONS, 1000.0)])
    seen = one("metric", told, metric=m.PREEMPTIONS.name)
    assert (seen.value, seen.applies) == (None, True)


def test_a_node_is_silent_since_its_last_word() -> None:
    node = online()
    Node.objects.update(last_seen=timezone.now() - timedelta(seconds=40))
    assert one("silent").value == pytest.approx(40, abs=5)
    Node.objects.filter(pk=node.pk).update(status=NodeStatus.OFFLINE)
    assert one("silent").value == pytest.approx(40, abs=5)


def test_a_box_is_held_since_its_update_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    node = online()
    assert one("held").value == 0.0
    since = timezone.now() - timedelta(seconds=90)
    facts = NodeFacts(node.pk, node.name, True, True, since, since, held=since)
    monkeypatch.setattr(World, "nodes", {node.pk: facts})
    assert one("held").value == pytest.approx(90, abs=5)


def test_a_node_that_was_never_there_is_not_missed() -> None:
    online()
    Node.objects.update(status=NodeStatus.PENDING, last_seen=None)
    assert not one("silent").applies


def test_an_online_node_without_readings_tells_nothing() -> None:
    online()
    assert one("absent").value == 600.0


def test_an_offline_node_has_a_rule_of_its_own() -> None:
    online()
    Node.objects.update(status=NodeStatus.OFFLINE)
    assert not one("absent").applies


def test_one_metric_may_be_missed_alone() -> None:
    node = online()
    seen = one("absent", (node, [cpu(None)]), metric=m.CPU_UTILIZATION.name, threshold=30)
    assert seen.value is not None
    assert seen.value > 30
    seen = one("absent", (node, [cpu(0.5)]), metric=m.CPU_UTILIZATION.name, threshold=30)
    assert seen.value == 0.0


def test_headroom_is_what_lies_above_the_floor() -> None:
    told = [host(m.MEMORY_AVAILABLE, 3e9), host(m.MEMORY_FLOOR, 1e9, kind="declared")]
    assert one("headroom", (online(), told)).value == 2e9


def test_headroom_is_unknown_where_memory_is() -> None:
    seen = one("headroom", (online(), [host(m.MEMORY_AVAILABLE, None)]))
    assert (seen.value, seen.reason) == (None, "Not read here.")


def test_a_clock_may_be_off_either_way() -> None:
    assert one("clock", (online(), [host(m.CLOCK_SKEW, -3.0)])).value == 3.0


def test_a_link_is_compared_with_its_usual_speed() -> None:
    node = online()
    Usual.objects.create(
        series=f"{node.pk}/node/link_speed_bits_per_second@host{{eth1}}",
        value=1e11,
        highest=1e11,
        at=timezone.now(),
    )
    told = (node, [host(m.LINK_SPEED, 1e10, label="eth1")])
    assert one("unusual", told, metric=m.LINK_SPEED.name).value == 0.1


def test_rows_outside_their_partition_are_counted() -> None:
    assert one("strays").value == 0.0


def test_what_is_usual_is_looked_up_after_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, deployment: Deployment
) -> None:
    told = (Node.objects.get(), [engine(m.STEP_SECONDS, 0.4, rank=0)])
    values: list[float | None] = [*([0.1] * 11), 9.0]
    found = series.Series(
        f"{LAUNCH}:rank0",
        m.STEP_SECONDS.name,
        "engine",
        "",
        "seconds",
        "measured",
        "e",
        "",
        at=[float(t) for t in range(12)],
        value=values,
        high=values,
    )
    history = series.History("minute", 60.0, [found])
    monkeypatch.setattr("monitoring.alerts.usual.history", lambda *_: history)
    now = timezone.now()
    tell(told[0], now, told[1])
    world = World(now)
    rule = Rule(name="R", kind="slow", threshold=3, clear=1)
    list(KINDS["slow"].watch(rule, world))
    world.usuals.look_up()
    [seen] = list(KINDS["slow"].watch(rule, World(now)))
    assert seen.observation.value == pytest.approx(4.0)


def test_a_rule_may_ask_for_several_labels() -> None:
    told = [host(m.GPU_XID_ERRORS, 1.0, label=label) for label in ("", "13", "48", "79")]
    found = look("metric", (online(), told), metric=m.GPU_XID_ERRORS.name, label="48, 79")
    assert [s.series.partition("{")[2] for s in found] == ["48}", "79}"]


def test_the_first_grave_fault_of_a_device_is_growth_and_others_are_not_looked_at() -> None:
    node = with_gpu(online())
    start = whole_minutes_ago(3)

    def faults(grave: float, own: float) -> list[Sample]:
        counts = {"": grave + own, "13": own, "79": grave}
        return [
            measured(
                m.GPU_XID_ERRORS,
                count,
                source="NVML events",
                scope="accelerator",
                subject="gpu:0",
                label=label,
            )
            for label, count in counts.items()
        ]

    rule = next(rule for rule in BUILT_IN if rule["key"] == "xid")
    keep(node, start, [(s, faults(0.0, 7.0 if s < 5 else 9.0)) for s in range(10)])
    asked = {"metric": rule["metric"], "label": rule["label"]}
    assert one("metric", (node, faults(0.0, 9.0)), **asked).value == 0.0
    keep(node, start, [(s, faults(1.0, 9.0)) for s in range(10, 20)])
    assert one("metric", (node, faults(1.0, 9.0)), **asked).value == 1.0
