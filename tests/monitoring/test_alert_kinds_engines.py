"""What rules about engines, ranks and their accelerators see."""

import msgspec
import pytest
from django.utils import timezone

from dashboard.models import Deployment, Node
from engine.protocol.agent import Limits
from monitoring import metrics as m
from monitoring.alerts import phases
from monitoring.alerts.phases import RankNow
from monitoring.models import NodeLimits, Usual
from tests.monitoring.alert_kinds_cast import (
    LAUNCH,
    deployment,
    engine,
    gains,
    gpu,
    look,
    one,
    with_gpu,
)

__all__ = ["deployment"]

pytestmark = pytest.mark.django_db


def test_little_power_counts_only_while_answers_are_written(deployment: Deployment) -> None:
    node = with_gpu(Node.objects.get())
    idle = [gpu(m.POWER, 12.0), gpu(m.GPU_POWER_LIMIT, 100.0), engine(m.REQUESTS_RUNNING, 0.0)]
    assert not one("low_power", (node, idle)).applies
    busy = [*idle[:2], engine(m.REQUESTS_RUNNING, 2.0)]
    seen = one("low_power", (node, busy))
    assert (seen.applies, seen.value) == (True, 0.12)


def test_without_a_limit_power_is_set_against_the_most_it_ever_drew(
    deployment: Deployment,
) -> None:
    node = with_gpu(Node.objects.get())
    told = (node, [gpu(m.POWER, 12.0), engine(m.REQUESTS_RUNNING, 2.0)])
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
    Deployment.objects.update(settings={"target_itl_ms": 100})
    assert one("token_target").value == pytest.approx(1.95)


def test_errors_are_a_share_of_at_least_five_requests(
    monkeypatch: pytest.MonkeyPatch, deployment: Deployment
) -> None:
    gains(monkeypatch, m.REQUESTS_FINISHED, {"stop": 6.0, "length": 2.0, "error": 2.0})
    assert one("errors").value == 0.2
    gains(monkeypatch, m.REQUESTS_FINISHED, {"error": 4.0})
    assert not one("errors").applies


def test_quiet_hours_explain_little_power(deployment: Deployment) -> None:
    node = with_gpu(Node.objects.get())
    told = (
        node,
        [gpu(m.POWER, 12.0), gpu(m.GPU_POWER_LIMIT, 100.0), engine(m.REQUESTS_RUNNING, 2.0)],
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
    node = with_gpu(Node.objects.get())
    limits = msgspec.to_builtins(Limits(power_watts=100.0, why="Always"))
    NodeLimits.objects.create(node=node, wanted=limits)
    told = [gpu(m.POWER, 12.0), engine(m.REQUESTS_RUNNING, 2.0)]
    assert not one("low_power", (node, told)).applies
    seen = one("low_power", (node, [*told, gpu(m.GPU_POWER_LIMIT, 100.0)]))
    assert (seen.applies, seen.value) == (True, 0.12)
