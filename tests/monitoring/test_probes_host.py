"""The machine's own readings are real, and missing hardware is said to be missing."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from monitoring.probes.gpu import GpuProbe
from monitoring.probes.host import CpuProbe, MemoryProbe, NetworkProbe, ThermalProbe
from monitoring.samples import Sample


def by_metric(samples: list[Sample]) -> dict[str, Sample]:
    return {sample.metric: sample for sample in samples}


def cpu(user: float, idle: float, iowait: float = 0.0, guest: float = 0.0) -> object:
    fields = SimpleNamespace(user=user, idle=idle, iowait=iowait, guest=guest)

    class Times(tuple[float, ...]):
        pass

    times = Times((user, idle, iowait, guest))
    for name, value in vars(fields).items():
        setattr(times, name, value)
    return times


def test_cpu_is_the_busy_share_since_the_last_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([cpu(100, 100), cpu(101, 102, iowait=1), cpu(101, 102, iowait=1)])
    monkeypatch.setattr(psutil, "cpu_times", lambda: next(readings))
    probe = CpuProbe()
    (busy,) = probe.read()
    assert busy.value == 0.25
    (standing,) = probe.read()
    assert (standing.value, standing.kind) == (None, "unavailable")


def test_a_guests_time_is_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([cpu(0, 0), cpu(2, 2, guest=1)])
    monkeypatch.setattr(psutil, "cpu_times", lambda: next(readings))
    (busy,) = CpuProbe().read()
    assert busy.value == 0.5


def test_memory_and_network_are_read() -> None:
    memory = by_metric(MemoryProbe().read())
    used, total = memory["memory_used_bytes"].value, memory["memory_total_bytes"].value
    assert used is not None
    assert total is not None
    assert 0 < used < total
    assert {sample.metric for sample in NetworkProbe().read()} == {
        "network_received_bytes_total",
        "network_sent_bytes_total",
    }


def test_no_sensor_is_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "sensors_temperatures", dict)
    monkeypatch.setattr(psutil, "sensors_fans", dict)
    samples = by_metric(ThermalProbe().read())
    assert samples["temperature_celsius"].reason == "This machine shows no temperature sensor."
    assert samples["fan_speed_rpm"].value is None


def test_a_standing_fan_is_a_zero_and_the_hottest_sensor_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heat = {"a": [SimpleNamespace(current=40.0), SimpleNamespace(current=None)]}
    heat["b"] = [SimpleNamespace(current=71.5)]
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: heat)
    monkeypatch.setattr(psutil, "sensors_fans", lambda: {"f": [SimpleNamespace(current=0)]})
    samples = by_metric(ThermalProbe().read())
    assert samples["temperature_celsius"].value == 71.5
    assert samples["fan_speed_rpm"].value == 0.0


def test_an_accelerator_is_looked_for(tmp_path: Path) -> None:
    (absent,) = GpuProbe(tmp_path).read()
    assert absent.reason == "No supported accelerator was found."
    (tmp_path / "kfd").touch()
    (present,) = GpuProbe(tmp_path).read()
    assert present.value is None
    assert present.reason == "Accelerator readings come with the telemetry release."
