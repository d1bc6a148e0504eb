"""The whole machine, mostly through psutil: shared by every agent that runs on it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from monitoring.metrics import (
    CPU_UTILIZATION,
    DISK_FREE,
    MEMORY_AVAILABLE,
    MEMORY_FLOOR,
    MEMORY_PAGE_CACHE,
    MEMORY_TOTAL,
    MEMORY_USED,
    NETWORK_RECEIVED,
    NETWORK_SENT,
    Metric,
)
from monitoring.probes.counters import Growing
from monitoring.samples import Sample, Scope, gettext_noop, measured, unavailable

NOTHING_RUNS = gettext_noop("No engine runs here, so nothing is kept free for one.")


class CpuProbe:
    """Busy share of all cores since the previous reading, 0..1; waiting for a disk is idle."""

    name = "host: /proc/stat"
    scope: Scope = "host"
    metrics: Sequence[Metric] = (CPU_UTILIZATION,)

    def __init__(self) -> None:
        self._last = _cpu_seconds()

    def read(self) -> list[Sample]:
        (busy, total), (last_busy, last_total) = _cpu_seconds(), self._last
        if total <= last_total:
            reason = gettext_noop("No processor time has been counted since the previous reading.")
            return [unavailable(CPU_UTILIZATION, reason, source=self.name, scope=self.scope)]
        self._last = busy, total
        ratio = min(1.0, max(0.0, (busy - last_busy) / (total - last_total)))
        return [measured(CPU_UTILIZATION, ratio, source=self.name, scope=self.scope)]


def _cpu_seconds() -> tuple[float, float]:
    """(busy, total) since boot, all cores."""
    times = psutil.cpu_times()
    # The kernel counts a guest's time into user and nice as well.
    twice = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    total = sum(times) - twice
    return total - times.idle - getattr(times, "iowait", 0.0), total


class MemoryProbe:
    """Used = what is not available to a new process without swapping.

    The page cache leaves out shared memory, which the kernel counts with it but cannot drop.
    """

    name = "host: /proc/meminfo"
    scope: Scope = "host"
    metrics: Sequence[Metric] = (MEMORY_USED, MEMORY_TOTAL, MEMORY_AVAILABLE, MEMORY_PAGE_CACHE)

    def read(self) -> list[Sample]:
        memory = psutil.virtual_memory()
        cache = max(0, memory.cached + memory.buffers - memory.shared)
        values = (memory.total - memory.available, memory.total, memory.available, cache)
        return [
            measured(metric, float(value), source=self.name, scope=self.scope)
            for metric, value in zip(self.metrics, values, strict=True)
        ]


class FloorProbe:
    """What engines leave free: `floor` answers in bytes, None where none runs."""

    name = "node's settings"
    scope: Scope = "host"
    metrics: Sequence[Metric] = (MEMORY_FLOOR,)

    def __init__(self, floor: Callable[[], int | None]) -> None:
        self._floor = floor

    def read(self) -> list[Sample]:
        floor = self._floor()
        if floor is None:
            return [unavailable(MEMORY_FLOOR, NOTHING_RUNS, source=self.name, scope=self.scope)]
        return [
            measured(
                MEMORY_FLOOR, float(floor), source=self.name, scope=self.scope, kind="declared"
            )
        ]


class DiskProbe:
    """What is left for an ordinary user on the disk that holds `folder`."""

    name = "host: statvfs"
    scope: Scope = "host"
    metrics: Sequence[Metric] = (DISK_FREE,)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> list[Sample]:
        free = float(psutil.disk_usage(str(self._folder)).free)
        return [measured(DISK_FREE, free, source=self.name, scope=self.scope)]


class NetworkProbe:
    """Bytes since boot over all interfaces but loopback."""

    name = "host: /proc/net/dev"
    scope: Scope = "host"
    metrics: Sequence[Metric] = (NETWORK_RECEIVED, NETWORK_SENT)

    def __init__(self) -> None:
        self._received, self._sent = Growing(), Growing()

    def read(self) -> list[Sample]:
        links = psutil.net_io_counters(pernic=True, nowrap=True)
        outward = {name: counters for name, counters in links.items() if name != "lo"}
        if not outward:
            reason = gettext_noop("This machine has no network interface but loopback.")
            return [
                unavailable(metric, reason, source=self.name, scope=self.scope)
                for metric in self.metrics
            ]
        received = self._received.total({n: float(c.bytes_recv) for n, c in outward.items()})
        sent = self._sent.total({n: float(c.bytes_sent) for n, c in outward.items()})
        return [
            measured(NETWORK_RECEIVED, received, source=self.name, scope=self.scope),
            measured(NETWORK_SENT, sent, source=self.name, scope=self.scope),
        ]
