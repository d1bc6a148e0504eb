"""What a made-up box measures in one second. Every source is named `simulated`."""

import math
from dataclasses import dataclass, field
from random import Random

from engine.agent.simulation.faults import FaultKind, Luck, SimulatedFault
from engine.agent.simulation.load import Load
from engine.errors import gettext_noop as _
from monitoring import metrics as m
from monitoring.metrics import Metric
from monitoring.samples import Kind, Sample, Scope, unavailable

SOURCE = "simulated"
LOST = _("The device has fallen off the bus.")
GIB = 2.0**30
DEVICE_MEMORY = 80 * GIB
HOST_MEMORY = 1024 * GIB
IDLE_WATTS, MOST_WATTS = 72.0, 700.0
ROOM = 22.0
MOST_CLOCK, LEAST_CLOCK = 1.98e9, 0.6e9
FANS = 6
FAN_REFERENCE_RPM, FAN_REFERENCE_DBA = 8000.0, 62.0


@dataclass
class DeviceSignals:
    """One accelerator. Temperature follows power with a delay; energy only grows."""

    index: int
    random: Random
    temperature: float = 34.0
    joules: float = 0.0
    watts: float = IDLE_WATTS
    held: float = field(init=False)

    def __post_init__(self) -> None:
        self.held = self.random.uniform(0.55, 0.92)
        self.joules = self.random.uniform(1e7, 5e8)

    def step(self, load: float, seconds: float, kinds: frozenset[FaultKind]) -> list[Sample]:
        busy = min(1.0, max(0.0, load + self.random.gauss(0.0, 0.03)))
        stuck, hot = "stuck-low" in kinds, "thermal" in kinds
        wanted = IDLE_WATTS + (MOST_WATTS - IDLE_WATTS) * busy * (0.65 if hot else 1.0)
        self.watts = 96.0 + self.random.gauss(0, 2) if stuck else wanted + self.random.gauss(0, 6)
        aim = ROOM + 9.0 + self.watts / MOST_WATTS * 38.0 + (24.0 if hot else 0.0)
        self.temperature += (aim - self.temperature) * (1.0 - math.exp(-seconds / 25.0))
        self.joules += self.watts * seconds
        clock = LEAST_CLOCK if stuck else MOST_CLOCK * (0.62 if hot else 1.0 - 0.08 * busy)
        return [
            self._read(m.GPU_UTILIZATION, busy),
            self._read(m.GPU_MEMORY_USED, DEVICE_MEMORY * min(0.97, self.held + 0.05 * busy)),
            self._read(m.GPU_MEMORY_TOTAL, DEVICE_MEMORY),
            self._read(m.GPU_TEMPERATURE, round(self.temperature)),
            self._read(m.POWER, self.watts),
            self._read(m.GPU_POWER_LIMIT, MOST_WATTS),
            self._read(m.ENERGY, self.joules),
            self._read(m.GPU_CLOCK, clock, label="sm"),
            self._read(m.GPU_THROTTLED, float(hot), label="thermal"),
            self._read(m.GPU_THROTTLED, float(self.watts > 0.985 * MOST_WATTS), label="power"),
            self._read(m.GPU_ECC_ERRORS, 0.0, label="uncorrected"),
            self._read(m.GPU_HEALTH, 1.0),
        ]

    def lost(self) -> list[Sample]:
        """The energy counter starts over when it is back, as a driver's does."""
        self.joules, self.watts, self.temperature = 0.0, IDLE_WATTS, 34.0
        metrics = (
            m.GPU_UTILIZATION,
            m.GPU_MEMORY_USED,
            m.GPU_MEMORY_TOTAL,
            m.GPU_TEMPERATURE,
            m.POWER,
            m.ENERGY,
        )
        return [
            unavailable(
                metric, LOST, source=SOURCE, scope="accelerator", subject=f"gpu:{self.index}"
            )
            for metric in metrics
        ]

    def _read(self, metric: Metric, value: float, label: str = "") -> Sample:
        return _sample(metric, value, "accelerator", f"gpu:{self.index}", label)


class NodeSignals:
    """One box with its devices. Call `read` once for each instant, in order."""

    def __init__(self, seed: int, devices: int, faults_per_day: float) -> None:
        self._random = Random(seed)
        self._load = Load.of(seed)
        self._luck = Luck(seed, devices, faults_per_day)
        self._devices = [DeviceSignals(i, Random(f"{seed}/{i}")) for i in range(devices)]
        self._wall = self._random.uniform(1e8, 1e9)
        self._received, self._sent = 0.0, 0.0
        self._last: float | None = None

    def silent(self, moment: float) -> bool:
        return any(fault.kind == "silent" for fault in self._luck.now(moment))

    def read(self, moment: float) -> list[Sample]:
        """`moment` in Unix seconds."""
        seconds = 1.0 if self._last is None else max(0.0, moment - self._last)
        self._last = moment
        load, faults = self._load.at(moment), self._luck.now(moment)
        samples: list[Sample] = []
        for device in self._devices:
            kinds = frozenset(f.kind for f in faults if f.device == device.index)
            if "device-lost" in kinds:
                samples += device.lost()
            else:
                samples += device.step(load, seconds, kinds)
        return [*self._host(load, seconds, faults), *samples]

    def _host(
        self, load: float, seconds: float, faults: tuple[SimulatedFault, ...]
    ) -> list[Sample]:
        kinds = {fault.kind for fault in faults}
        accelerators = sum(device.watts for device in self._devices)
        host = 380.0 + 260.0 * load + accelerators
        wall = host / 0.94
        self._wall += wall * seconds
        carried = (0.05 if "link-degraded" in kinds else 1.0) * 2.1e9 * load * seconds
        self._received += carried
        self._sent += carried * 0.97
        inlet = ROOM + 2.5 + (14.0 if "thermal" in kinds else 0.0) + self._random.gauss(0, 0.2)
        rpm = 3600.0 + 4800.0 * min(1.0, accelerators / (8 * MOST_WATTS) + 0.25 * load)
        used = HOST_MEMORY * (0.22 + 0.1 * load)
        return [
            _sample(m.CPU_UTILIZATION, min(1.0, 0.04 + 0.5 * load), "host"),
            _sample(m.MEMORY_USED, used, "host"),
            _sample(m.MEMORY_TOTAL, HOST_MEMORY, "host"),
            _sample(m.MEMORY_AVAILABLE, HOST_MEMORY - used, "host"),
            _sample(m.MEMORY_PAGE_CACHE, HOST_MEMORY * 0.31, "host"),
            _sample(m.INLET_TEMPERATURE, inlet, "host"),
            _sample(m.TEMPERATURE, inlet + 18.0 + 14.0 * load, "host"),
            _sample(m.POWER, host, "host"),
            _sample(m.POWER, wall, "wall"),
            _sample(m.ENERGY, self._wall, "wall"),
            *self._fans(rpm, "fan-stopped" in kinds),
            _sample(m.LINK_RECEIVED, self._received, "host", label="eth0"),
            _sample(m.LINK_SENT, self._sent, "host", label="eth0"),
            _sample(m.LINK_SPEED, 1e10 if "link-degraded" in kinds else 2e11, "host", label="eth0"),
            _sample(m.DISK_FREE, 812 * GIB, "host"),
        ]

    def _fans(self, rpm: float, stopped: bool) -> list[Sample]:
        speeds = [rpm * (1.0 + self._random.gauss(0, 0.01)) for _ in range(FANS)]
        if stopped:
            speeds[0] = 0.0
        level = 10 * math.log10(
            sum(
                10 ** ((FAN_REFERENCE_DBA + 50 * math.log10(speed / FAN_REFERENCE_RPM)) / 10)
                for speed in speeds
                if speed > 0
            )
        )
        return [
            *(_sample(m.FAN_SPEED, s, "host", label=f"fan{i}") for i, s in enumerate(speeds, 1)),
            _sample(m.FAN_SPEED, max(speeds), "host"),
            _sample(m.NOISE, level, "room", label="1 m", kind="estimated"),
            _sample(m.NOISE_BAND, 5.0, "room", label="1 m", kind="estimated"),
        ]


def _sample(
    metric: Metric,
    value: float,
    scope: Scope,
    subject: str = "node",
    label: str = "",
    kind: Kind = "measured",
) -> Sample:
    return Sample(metric.name, value, metric.unit, SOURCE, kind, scope, subject, "", label)
