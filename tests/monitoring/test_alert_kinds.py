"""What each kind of rule sees."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from django.utils import timezone

from dashboard.choices import NodeStatus
from dashboard.models import Deployment, Node
from engine.protocol.agent import Accelerator, Limits
from monitoring import metrics as m
from monitoring.alerts import phases
from monitoring.alerts.builtin import BUILT_IN
from monitoring.alerts.kinds import KINDS
from monitoring.alerts.kinds import fleet as fleet_kinds
from monitoring.alerts.phases import RankNow
from monitoring.alerts.rules import Observation
from monitoring.alerts.world import Sighting, World
from monitoring.metrics import Metric
from monitoring.models import NodeLimits, Rule, TariffRate, Usual
from monitoring.samples import Sample, measured, unavailable
from monitoring.storage import series
from monitoring.storage.series import Gain
from tests.dashboard.pages_cast import HARDWARE
from tests.monitoring.alert_cast import cpu, online, tell
from tests.monitoring.cast import launch
from tests.monitoring.metered import keep, whole_minutes_ago

pytestmark = pytest.mark.django_db
LAUNCH = "launch:abc"


def host(metric: Metric, value: float | None, **more: Any) -> Sample:
    given = {"source": "host", "scope": "host", **more}
    if value is None:
        return unavailable(metric, "Not read here.", **given)
    return measured(metric, value, **given)


def engine(metric: Metric, value: float, rank: int | None = None, label: str = "") -> Sample:
    subject = LAUNCH if rank is None else f"{LAUNCH}:rank{rank}"
    return measured(metric, value, source="engine", scope="engine", subject=subject, label=label)


def look(kind: str, *told: tuple[Node, Sequence[Sample]], **values: Any) -> list[Sighting]:
    now = timezone.now()
    for node, samples in told:
        tell(node, now, samples)
    rule = Rule(name="R", kind=kind, threshold=values.pop("threshold", 1), clear=1, **values)
    return list(KINDS[kind].watch(rule, World(now)))


def one(kind: str, *told: tuple[Node, Sequence[Sample]], **values: Any) -> Observation:
    [sighting] = look(kind, *told, **values)
    return sighting.observation


def gains(monkeypatch: pytest.MonkeyPatch, metric: Metric, by_label: dict[str, float]) -> None:
    """Counters that grew within the last minutes, and are told."""
    for node in Node.objects.all():
        told = [engine(metric, 1.0, label=label) for label in by_label] or [engine(metric, 1.0)]
        tell(node, timezone.now(), told)
    found = [
        Gain(LAUNCH, metric.name, "engine", label, "measured", 0.0, amount, 60.0)
        for label, amount in by_label.items()
    ]
    monkeypatch.setattr("monitoring.alerts.world.gains", lambda *_: found)


@pytest.fixture
def deployment() -> Deployment:
    return launch("abc", [online()])


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
    node = _with_gpu(online())
    [seen] = look("metric", (node, [_gpu(m.GPU_HEALTH, 0.0)]), metric=m.GPU_HEALTH.name)
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


def _gpu(metric: Metric, value: float) -> Sample:
    return measured(metric, value, source="nvml", scope="accelerator", subject="gpu:0")


def _with_gpu(node: Node) -> Node:
    device = Accelerator(index=0, vendor="nvidia", name="GB10")
    node.inventory = msgspec.to_builtins(msgspec.structs.replace(HARDWARE, accelerators=[device]))
    node.save()
    return node


def test_little_power_counts_only_while_answers_are_written(deployment: Deployment) -> None:
    node = _with_gpu(Node.objects.get())
    idle = [_gpu(m.POWER, 12.0), _gpu(m.GPU_POWER_LIMIT, 100.0), engine(m.REQUESTS_RUNNING, 0.0)]
    assert not one("low_power", (node, idle)).applies
    busy = [*idle[:2], engine(m.REQUESTS_RUNNING, 2.0)]
    seen = one("low_power", (node, busy))
    assert (seen.applies, seen.value) == (True, 0.12)


def test_without_a_limit_power_is_set_against_the_most_it_ever_drew(
    deployment: Deployment,
) -> None:
    node = _with_gpu(Node.objects.get())
    told = (node, [_gpu(m.POWER, 12.0), engine(m.REQUESTS_RUNNING, 2.0)])
    assert one("low_power", told).value is None
    Usual.objects.create(
        series=f"{node.pk}/gpu:0/power_watts@accelerator",
        value=40.0,
        highest=60.0,
        at=timezone.now(),
    )
    assert one("low_power", told).value == 0.2


def test_a_hung_engine_and_a_rank_without_a_pulse(deployment: Deployment) -> None:
    node = Node.objects.get()
    rank = RankNow(0, "step", "allreduce", 12, 88, 14.0, 14.0)
    phases.keep("abc", "ready", [rank])
    found = look("hung", (node, [engine(m.PROGRESS_AGE, 9.0)]))
    assert {s.topic: s.observation.value for s in found} == {
        LAUNCH: 9.0,
        f"{LAUNCH}:rank0": 14.0,
    }
    assert {s.node for s in found} == {None, node.pk}


def test_a_rank_that_still_loads_is_not_hung(deployment: Deployment) -> None:
    phases.keep("abc", "loading", [RankNow(0, "loading", "", None, -1, None, 14.0)])
    [seen] = look("hung", (Node.objects.get(), [engine(m.PROGRESS_AGE, 0.0)]))
    assert seen.topic == LAUNCH


def test_a_slow_state_is_slow_against_its_own_median(deployment: Deployment) -> None:
    told = (Node.objects.get(), [engine(m.STEP_SECONDS, 0.4, rank=0)])
    assert one("slow", told).value is None
    Usual.objects.create(
        series=f"{LAUNCH}:rank0/step_seconds@engine", value=0.1, highest=0.2, at=timezone.now()
    )
    assert one("slow", told).value == pytest.approx(4.0)


def test_a_full_cache_matters_while_somebody_waits(deployment: Deployment) -> None:
    node = Node.objects.get()
    alone = [engine(m.KV_USAGE, 0.99), engine(m.REQUESTS_WAITING, 0.0)]
    assert not one("kv_full", (node, alone)).applies
    crowd = [engine(m.KV_USAGE, 0.99), engine(m.REQUESTS_WAITING, 4.0)]
    seen = one("kv_full", (node, crowd))
    assert (seen.applies, seen.value) == (True, 0.99)


def test_the_95th_percentile_comes_from_all_requests(
    monkeypatch: pytest.MonkeyPatch, deployment: Deployment
) -> None:
    gains(monkeypatch, m.FIRST_TOKEN_BUCKET, {"le=1": 90.0, "le=2": 100.0, "le=+Inf": 100.0})
    assert one("first_token").value == pytest.approx(1.5)


def test_where_nobody_asked_nobody_waited(
    monkeypatch: pytest.MonkeyPatch, deployment: Deployment
) -> None:
    gains(monkeypatch, m.FIRST_TOKEN_BUCKET, {})
    assert not one("first_token").applies


def test_time_per_token_is_set_against_the_deployments_target(
    monkeypatch: pytest.MonkeyPatch, deployment: Deployment
) -> None:
    gains(monkeypatch, m.INTER_TOKEN_BUCKET, {"le=0.1": 0.0, "le=0.2": 100.0})
    assert not one("token_target").applies
    Deployment.objects.update(target_itl_ms=100)
    assert one("token_target").value == pytest.approx(1.95)


def test_errors_are_a_share_of_at_least_five_requests(
    monkeypatch: pytest.MonkeyPatch, deployment: Deployment
) -> None:
    gains(monkeypatch, m.REQUESTS_FINISHED, {"stop": 6.0, "length": 2.0, "error": 2.0})
    assert one("errors").value == 0.2
    gains(monkeypatch, m.REQUESTS_FINISHED, {"error": 4.0})
    assert not one("errors").applies


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


def test_a_budget_is_what_this_months_energy_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    node = online()
    used = [Gain(f"{node.pk}/node", m.ENERGY.name, "wall", "", "measured", 0.0, 3.6e7, 3600.0)]
    monkeypatch.setattr("monitoring.alerts.spending.gains", lambda *_: used)
    assert one("budget", price=Decimal("0.25")).value == pytest.approx(2.5)


def test_a_budget_goes_by_the_tariff_where_one_is_entered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = online()
    day = date(2026, 1, 1)
    TariffRate.objects.create(since=day, begins=time(0), ends=time(0), price=Decimal("0.5"))
    at = datetime(2026, 11, 3, tzinfo=UTC).timestamp()
    used = [Gain(f"{node.pk}/node", m.ENERGY.name, "wall", "", "measured", at, 3.6e7, 3600.0)]
    monkeypatch.setattr("monitoring.alerts.spending.gains", lambda *_: used)
    assert one("budget", price=Decimal("0.25")).value == pytest.approx(5.0)


def test_a_budget_without_a_price_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    online()
    monkeypatch.setattr("monitoring.alerts.spending.gains", lambda *_: [])
    seen = one("budget")
    assert (seen.value, seen.reason) == (None, fleet_kinds.NO_COST)


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


def test_quiet_hours_explain_little_power(deployment: Deployment) -> None:
    node = _with_gpu(Node.objects.get())
    told = (
        node,
        [_gpu(m.POWER, 12.0), _gpu(m.GPU_POWER_LIMIT, 100.0), engine(m.REQUESTS_RUNNING, 2.0)],
    )
    limits = Limits(clock_hertz=1e9, why="Night")
    row = NodeLimits.objects.create(node=node, wanted=msgspec.to_builtins(limits))
    assert not one("low_power", told).applies
    row.wanted = msgspec.to_builtins(Limits(batch_caps={"abc": 1}, why="Night"))
    row.save()
    assert not one("low_power", told).applies
    row.wanted = {}
    row.save()
    assert one("low_power", told).applies


def test_a_power_limit_that_can_be_read_hides_nothing(deployment: Deployment) -> None:
    node = _with_gpu(Node.objects.get())
    limits = msgspec.to_builtins(Limits(power_watts=100.0, why="Always"))
    NodeLimits.objects.create(node=node, wanted=limits)
    told = [_gpu(m.POWER, 12.0), engine(m.REQUESTS_RUNNING, 2.0)]
    assert not one("low_power", (node, told)).applies
    seen = one("low_power", (node, [*told, _gpu(m.GPU_POWER_LIMIT, 100.0)]))
    assert (seen.applies, seen.value) == (True, 0.12)


def test_made_up_energy_costs_nobody_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    node = online()
    node.inventory = msgspec.to_builtins(msgspec.structs.replace(HARDWARE, simulated=True))
    node.save()
    used = [Gain(f"{node.pk}/node", m.ENERGY.name, "wall", "", "measured", 0.0, 3.6e7, 3600.0)]
    monkeypatch.setattr(
        "monitoring.alerts.spending.gains", lambda subjects, *_: used if subjects else []
    )
    assert one("budget", price=Decimal("0.25")).value is None


def test_the_first_grave_fault_of_a_device_is_growth_and_others_are_not_looked_at() -> None:
    node = _with_gpu(online())
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
