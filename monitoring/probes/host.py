"""The whole machine, through psutil: shared by every agent that runs on it."""

from collections.abc import Mapping, Sequence

import psutil

from monitoring.metrics import (
    CPU_UTILIZATION,
    FAN_SPEED,
    MEMORY_TOTAL,
    MEMORY_USED,
    NETWORK_RECEIVED,
    NETWORK_SENT,
    TEMPERATURE,
    Metric,
)
from monitoring.samples import Sample, Scope, gettext_noop, measured, unavailable

NO_SENSOR = gettext_noop("This machine shows no temperature sensor.")
NO_FAN = gettext_noop("This machine shows no fan.")


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
    """Used = what is not available to a new process without swapping."""

    name = "host: /proc/meminfo"
    scope: Scope = "host"
    metrics: Sequence[Metric] = (MEMORY_USED, MEMORY_TOTAL)

    def read(self) -> list[Sample]:
        memory = psutil.virtual_memory()
        used = float(memory.total - memory.available)
        return [
            measured(MEMORY_USED, used, source=self.name, scope=self.scope),
            measured(MEMORY_TOTAL, float(memory.total), source=self.name, scope=self.scope),
        ]


class NetworkProbe:
    """Bytes since boot over all interfaces but loopback."""

    name = "host: /proc/net/dev"
    scope: Scope = "host"
    metrics: Sequence[Metric] = (NETWORK_RECEIVED, NETWORK_SENT)

    def read(self) -> list[Sample]:
        links = psutil.net_io_counters(pernic=True, nowrap=True)
        outward = [counters for name, counters in links.items() if name != "lo"]
        if not outward:
            reason = gettext_noop("This machine has no network interface but loopback.")
            return [
                unavailable(metric, reason, source=self.name, scope=self.scope)
                for metric in self.metrics
            ]
        received = float(sum(counters.bytes_recv for counters in outward))
        sent = float(sum(counters.bytes_sent for counters in outward))
        return [
            measured(NETWORK_RECEIVED, received, source=self.name, scope=self.scope),
            measured(NETWORK_SENT, sent, source=self.name, scope=self.scope),
        ]


class ThermalProbe:
    """The hottest sensor and the fastest fan, where the kernel shows any."""

    name = "host: hwmon"
    scope: Scope = "host"
    metrics: Sequence[Metric] = (TEMPERATURE, FAN_SPEED)

    def read(self) -> list[Sample]:
        return [
            self._highest(TEMPERATURE, psutil.sensors_temperatures(), NO_SENSOR),
            self._highest(FAN_SPEED, psutil.sensors_fans(), NO_FAN),
        ]

    def _highest(
        self, metric: Metric, chips: Mapping[str, Sequence[object]], absent: str
    ) -> Sample:
        """A reading the driver could not take is None in psutil; it is no zero."""
        values = [
            float(value)
            for sensors in chips.values()
            for sensor in sensors
            if (value := getattr(sensor, "current", None)) is not None
        ]
        if not values:
            return unavailable(metric, absent, source=self.name, scope=self.scope)
        return measured(metric, max(values), source=self.name, scope=self.scope)
