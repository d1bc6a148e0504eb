"""The readings of one NVIDIA device. Each is asked for by itself and fails by itself."""

import os
import time
from collections.abc import Callable, Iterator

import psutil
import pynvml

from monitoring.metrics import (
    ENERGY,
    FAN_SPEED,
    GPU_CLOCK,
    GPU_ECC_ERRORS,
    GPU_FAN,
    GPU_HEALTH,
    GPU_MEMORY_HEADROOM,
    GPU_MEMORY_TOTAL,
    GPU_MEMORY_USED,
    GPU_POWER_LIMIT,
    GPU_TEMPERATURE,
    GPU_THROTTLED,
    GPU_UTILIZATION,
    POWER,
    Metric,
)
from monitoring.probes.devices import Device
from monitoring.probes.energy import Integrator, estimated_energy
from monitoring.probes.nvidia.calls import NOT_SUPPORTED, Missing, ask, field
from monitoring.samples import Sample, gettext_noop, measured, unavailable

METRICS = (
    GPU_UTILIZATION,
    GPU_MEMORY_USED,
    GPU_MEMORY_TOTAL,
    GPU_MEMORY_HEADROOM,
    GPU_TEMPERATURE,
    POWER,
    ENERGY,
)
"""What every device is asked for; the rest is told only while it can be asked."""

ALL_BITS = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
"""How NVML says that a number is not available, where its call does not."""
ZERO_SECONDS = 10.0
LEAST_SECONDS, MOST_SECONDS = 0.5, 3.0
"""Between two readings of a counter that tell what is drawn now; it moves in steps."""
SINCE_LOADED = "NVML, since the driver was loaded"
AVERAGE, INSTANT = pynvml.NVML_FI_DEV_POWER_AVERAGE, pynvml.NVML_FI_DEV_POWER_INSTANT
RECOVERY = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""The kernel's fixed inode number for the namespace in which all processes are seen."""

NOT_MEASURABLE = gettext_noop(
    "Not measurable: the driver says 0 while an engine is at work on it. Look at how busy the "
    "engine is."
)
NO_FAN = gettext_noop("This accelerator has no fan of its own.")
UNSEEN = gettext_noop(
    "The processes on the accelerator cannot be seen from inside a container; run the agent on "
    "the host, or with its process namespace."
)
UNTOLD = gettext_noop("The driver does not say how much memory each process has.")

THROTTLING = {
    "power": pynvml.nvmlClocksEventReasonSwPowerCap
    | pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown,
    "thermal": pynvml.nvmlClocksEventReasonSwThermalSlowdown
    | pynvml.nvmlClocksEventReasonHwThermalSlowdown,
    "hardware": pynvml.nvmlClocksEventReasonHwSlowdown,
}


class DeviceReader:
    """`serving` says whether an engine of this node has answers in the making."""

    def __init__(self, device: Device, serving: Callable[[], bool]) -> None:
        self.device = device
        self.gone = False
        """A call of the last reading said that the handle is of no use any more."""
        self._serving = serving
        self._zero_since: float | None = None
        self._integrator = Integrator(1.0)
        self._counted: tuple[float, int] | None = None

    def read(self, handle: object) -> list[Sample]:
        self.gone = False
        return [
            *self._memory(handle),
            self._utilization(handle),
            self._tell(GPU_TEMPERATURE, self._temperature(handle)),
            *self._power(handle),
            *self._clocks(handle),
            *self._throttling(handle),
            *self._fan(handle),
            *self._errors(handle),
        ]

    def absent(self, reason: str) -> list[Sample]:
        return [self._tell(metric, Missing(reason)) for metric in METRICS]

    def _memory(self, handle: object) -> Iterator[Sample]:
        if self.device.unified:
            yield from self._unified_memory(handle)
            return
        memory = ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
        if isinstance(memory, Missing):
            for metric in (GPU_MEMORY_USED, GPU_MEMORY_TOTAL, GPU_MEMORY_HEADROOM):
                yield self._tell(metric, memory)
            return
        yield self._tell(GPU_MEMORY_USED, memory.used)
        yield self._tell(GPU_MEMORY_TOTAL, memory.total)
        yield self._tell(GPU_MEMORY_HEADROOM, memory.free)

    def _unified_memory(self, handle: object) -> Iterator[Sample]:
        """What the driver says of an integrated device's memory is nothing, or wrong: what it holds
        is what its processes hold, and what it can still have is what the host can."""
        host = psutil.virtual_memory()
        used = self._held_by_processes(handle)
        yield self._tell(GPU_MEMORY_USED, used, "NVML, sum over processes")
        source = "host: /proc/meminfo"
        yield self._tell(GPU_MEMORY_TOTAL, host.total, source, label="unified")
        yield self._tell(GPU_MEMORY_HEADROOM, host.available, source)

    def _held_by_processes(self, handle: object) -> int | Missing:
        held: dict[int, int] = {}
        for call in (
            pynvml.nvmlDeviceGetComputeRunningProcesses_v3,
            pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
        ):
            processes = ask(call, handle)
            if isinstance(processes, Missing):
                return processes
            for process in processes:
                if process.usedGpuMemory is None:
                    return Missing(UNTOLD)
                # One that computes and draws is in both lists, with all that it has.
                had = held.get(process.pid, 0)
                held[process.pid] = max(had, process.usedGpuMemory)
        if not held and _sees_own_processes_only():
            return Missing(UNSEEN)
        return sum(held.values())

    def _utilization(self, handle: object) -> Sample:
        rates = ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
        if isinstance(rates, Missing):
            return self._tell(GPU_UTILIZATION, rates)
        if self._is_false_zero(handle, rates.gpu):
            return self._tell(GPU_UTILIZATION, Missing(NOT_MEASURABLE))
        return self._tell(GPU_UTILIZATION, rates.gpu / 100, "NVML, share of time with a kernel")

    def _is_false_zero(self, handle: object, percent: int) -> bool:
        """Some drivers of integrated devices say 0 whatever runs. It is believed unless an engine
        has been at work, with a process on the device, for a while."""
        suspect = percent == 0 and self.device.unified and self._serving()
        if suspect:
            processes = ask(pynvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
            suspect = not isinstance(processes, Missing) and bool(processes)
        if not suspect:
            self._zero_since = None
            return False
        if self._zero_since is None:
            self._zero_since = time.monotonic()
        return time.monotonic() - self._zero_since > ZERO_SECONDS

    def _temperature(self, handle: object) -> int | Missing:
        """By the call that drivers are about to lose, else by the one that takes its place."""
        sensor = pynvml.NVML_TEMPERATURE_GPU
        celsius = ask(pynvml.nvmlDeviceGetTemperature, handle, sensor)
        if isinstance(celsius, Missing) and celsius.code == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            return ask(pynvml.nvmlDeviceGetTemperatureV, handle, sensor)
        return celsius

    def _power(self, handle: object) -> Iterator[Sample]:
        """The driver's average of a second, where it says which it gives; else what it calls the
        usage, which is an average on newer devices; else what its energy counter grew by."""
        power, source = field(handle, AVERAGE), "NVML, average of 1 s"
        if isinstance(power, Missing):
            power, source = ask(pynvml.nvmlDeviceGetPowerUsage, handle), "NVML, driver's average"
        if isinstance(power, Missing):
            power, source = field(handle, INSTANT), "NVML, instant"
        joules = ask(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)
        grown = self._grown(joules)
        watts = self._tell(POWER, power, source, scale=1e-3)
        if watts.value is None and grown is not None:
            watts = self._derived(grown)
        yield watts
        if isinstance(joules, Missing):
            yield estimated_energy(watts, self._integrator, source="NVML, power over time")
        else:
            yield self._tell(ENERGY, joules, "NVML, energy counter", scale=1e-3)
        limit = ask(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        yield self._tell(GPU_POWER_LIMIT, limit, scale=1e-3)

    def _grown(self, millijoules: int | Missing) -> float | None:
        """Watts, from two readings of the energy counter that are not too far apart."""
        now, before = time.monotonic(), self._counted
        if isinstance(millijoules, Missing):
            self._counted = None
            return None
        if before is not None and now - before[0] < LEAST_SECONDS:
            return None
        self._counted = now, millijoules
        if before is None or now - before[0] > MOST_SECONDS or millijoules < before[1]:
            return None
        return (millijoules - before[1]) / 1e3 / (now - before[0])

    def _derived(self, watts: float) -> Sample:
        return measured(
            POWER,
            watts,
            source="NVML, energy counter over time",
            scope="accelerator",
            subject=self.device.subject,
            kind="derived",
        )

    def _clocks(self, handle: object) -> Iterator[Sample]:
        for label, clock in (("sm", pynvml.NVML_CLOCK_SM), ("memory", pynvml.NVML_CLOCK_MEM)):
            megahertz = ask(pynvml.nvmlDeviceGetClockInfo, handle, clock)
            yield self._tell(GPU_CLOCK, megahertz, label=label, scale=1e6)

    def _throttling(self, handle: object) -> Iterator[Sample]:
        reasons = ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
        for label, bits in THROTTLING.items():
            held = reasons if isinstance(reasons, Missing) else int(bool(reasons & bits))
            yield self._tell(GPU_THROTTLED, held, label=label)

    def _fan(self, handle: object) -> Iterator[Sample]:
        count = ask(pynvml.nvmlDeviceGetNumFans, handle)
        if isinstance(count, Missing) or not count:
            yield self._tell(GPU_FAN, count if isinstance(count, Missing) else Missing(NO_FAN))
            return
        yield self._tell(
            GPU_FAN,
            ask(pynvml.nvmlDeviceGetFanSpeed, handle),
            "NVML, intended speed",
            scale=1e-2,
        )
        speed = ask(pynvml.nvmlDeviceGetFanSpeedRPM, handle)
        if not isinstance(speed, Missing):
            yield self._tell(FAN_SPEED, speed)

    def _errors(self, handle: object) -> Iterator[Sample]:
        for label, kind in (
            ("corrected", pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
            ("uncorrected", pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        ):
            count = ask(pynvml.nvmlDeviceGetTotalEccErrors, handle, kind, pynvml.NVML_VOLATILE_ECC)
            yield self._tell(GPU_ECC_ERRORS, count, SINCE_LOADED, label)
        rows = ask(pynvml.nvmlDeviceGetRemappedRows, handle)
        remapped = rows if isinstance(rows, Missing) else rows[0] + rows[1]
        yield self._tell(GPU_ECC_ERRORS, remapped, "NVML, remapped rows", "remapped")
        action = field(handle, RECOVERY)
        well = action if isinstance(action, Missing) else int(action == 0)
        yield self._tell(GPU_HEALTH, well, "NVML, no recovery asked for")

    def _tell(
        self,
        metric: Metric,
        value: float | Missing,
        source: str = "NVML",
        label: str = "",
        scale: float = 1.0,
    ) -> Sample:
        subject = self.device.subject
        if value in ALL_BITS:
            value = Missing(NOT_SUPPORTED)
        if isinstance(value, Missing):
            self.gone |= value.gone
            return unavailable(
                metric,
                value.reason,
                source=source,
                scope="accelerator",
                subject=subject,
                label=label,
            )
        return measured(
            metric,
            float(value) * scale,
            source=source,
            scope="accelerator",
            subject=subject,
            label=label,
        )


def _sees_own_processes_only() -> bool:
    """In a process namespace of its own the driver's list leaves out what runs outside it."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino != FIRST_PID_NAMESPACE
    except OSError:
        return False
