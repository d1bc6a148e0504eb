"""The machine's own readings are real, and what is not known is said to be missing."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from monitoring.probes.host import CpuProbe, DiskProbe, FloorProbe, MemoryProbe, NetworkProbe
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


def test_shared_memory_is_no_page_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ranks share with each other counts as cached with the kernel, and cannot be dropped."""
    memory = SimpleNamespace(total=100, available=60, cached=50, buffers=5, shared=20)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    values = {metric: sample.value for metric, sample in by_metric(MemoryProbe().read()).items()}
    assert values["memory_page_cache_bytes"] == 35
    assert values["memory_available_bytes"] == 60
    assert values["memory_used_bytes"] == 40


def test_what_engines_leave_free_is_declared() -> None:
    (none,) = FloorProbe(lambda: None).read()
    assert none.reason == "No engine runs here, so nothing is kept free for one."
    (floor,) = FloorProbe(lambda: 1 << 30).read()
    assert (floor.value, floor.kind) == (1 << 30, "declared")


def test_the_disk_is_the_one_of_the_folder(tmp_path: Path) -> None:
    (free,) = DiskProbe(tmp_path).read()
    assert free.value is not None
    assert abs(free.value - psutil.disk_usage(str(tmp_path)).free) < 1 << 30
    with pytest.raises(FileNotFoundError):
        DiskProbe(tmp_path / "gone").read()
