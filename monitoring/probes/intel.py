"""Intel's data centre devices, from the CSV that `xpu-smi` prints.

Version 2 takes nvidia-smi's way of asking (`--query-gpu`); version 1 has `dump`. Either names its
columns in the first line, and columns are found by these names, never by their place.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from monitoring.metrics import (
    ENERGY,
    GPU_CLOCK,
    GPU_MEMORY_HEADROOM,
    GPU_MEMORY_TOTAL,
    GPU_MEMORY_USED,
    GPU_TEMPERATURE,
    GPU_UTILIZATION,
    POWER,
    Metric,
)
from monitoring.probes.command import UNREADABLE, Polled, ToolError, run
from monitoring.probes.devices import Device, Numbering, Unreadable
from monitoring.probes.energy import Integrator, estimated_energy
from monitoring.samples import Sample, gettext_noop, measured, unavailable

SOURCE = "xpu-smi"
MIB = 1 << 20
FIRST_SECONDS = 10.0
"""For the first answer, when the agent starts."""
QUERY = (
    "index,name,uuid,driver_version,utilization.gpu,memory.used,memory.total,temperature.gpu,"
    "power.draw,clocks.current.graphics"
)
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("xpu-smi", f"--query-gpu={QUERY}", "--format=csv,nounits"),
    ("xpu-smi", "dump", "-d", "-1", "-m", "0,1,2,3,8,18", "-n", "1"),
)
NAMES: dict[str, tuple[str, ...]] = {
    "index": ("index", "deviceid"),
    "name": ("name", "device name"),
    "uuid": ("uuid",),
    "driver": ("driver_version",),
    "busy": ("utilization.gpu", "gpu utilization"),
    "used": ("memory.used", "gpu memory used"),
    "total": ("memory.total",),
    "celsius": ("temperature.gpu", "gpu core temperature"),
    "watts": ("power.draw", "gpu power"),
    "joules": ("gpu energy consumed",),
    "clock": ("clocks.current.graphics", "clocks.gr", "gpu frequency"),
}
NOT_TOLD = gettext_noop("The accelerator's tool does not tell it.")
GONE = gettext_noop("The accelerator's tool does not list the device any more.")

Row = Mapping[str, str]


def parse(text: str) -> list[Row]:
    """One row a device, by our names; raises ToolError where there is none."""
    lines = list(csv.reader(io.StringIO(text), skipinitialspace=True))
    if len(lines) < 2:
        raise ToolError(UNREADABLE, text[:500])
    columns = [re.sub(r"\s*[\[(].*", "", cell).strip().lower() for cell in lines[0]]
    rows = [_row(columns, line) for line in lines[1:] if line]
    if not any("index" in row for row in rows):
        raise ToolError(UNREADABLE, text[:500])
    return [row for row in rows if "index" in row]


def _row(columns: Sequence[str], line: Sequence[str]) -> Row:
    cells = dict(zip(columns, (cell.strip() for cell in line), strict=False))
    found = {}
    for ours, theirs in NAMES.items():
        cell = next((cells[name] for name in theirs if cells.get(name)), "")
        if cell and cell.upper() not in ("N/A", "[N/A]", "[NOT SUPPORTED]"):
            found[ours] = cell
    return found


def ask() -> str:
    """By the newer way of asking, else by the older; raises ToolError."""
    try:
        return run(COMMANDS[0])
    except ToolError:
        return run(COMMANDS[1])


class IntelReader:
    def __init__(self, numbering: Numbering, ask: Callable[[], str] = ask) -> None:
        self._numbering = numbering
        self._polled = Polled(lambda: parse(ask()))
        self._known: dict[str, tuple[Device, Integrator]] = {}

    def devices(self) -> list[Device]:
        return [device for device, _integrator in self._known.values()]

    def read(self) -> list[Sample]:
        if not self._known:
            self._polled.wait(FIRST_SECONDS)
        try:
            rows = {row["index"]: row for row in self._polled.latest()}
        except ToolError as error:
            if not self._known:
                raise Unreadable(error.reason) from error
            return self._all_absent(error.reason)
        for key, row in rows.items():
            self._known.setdefault(key, (self._device(key, row), Integrator(5.0)))
        return [sample for key in self._known for sample in self._samples(key, rows.get(key))]

    def _all_absent(self, reason: str) -> list[Sample]:
        return [
            sample
            for device, integrator in self._known.values()
            for sample in _samples(device, integrator, {}, reason)
        ]

    def _device(self, key: str, row: Row) -> Device:
        total = _number(row, "total")
        return Device(
            index=self._numbering.number("intel", key),
            vendor="intel",
            name=row.get("name", "Intel"),
            uuid=row.get("uuid", ""),
            memory_bytes=None if total is None else int(total) * MIB,
            driver=row.get("driver", ""),
        )

    def _samples(self, key: str, row: Row | None) -> Iterator[Sample]:
        device, integrator = self._known[key]
        if row is None:
            return _samples(device, integrator, {}, GONE)
        return _samples(device, integrator, row, NOT_TOLD)


def _samples(device: Device, integrator: Integrator, row: Row, reason: str) -> Iterator[Sample]:
    def tell(metric: Metric, value: float | None, scale: float = 1.0, label: str = "") -> Sample:
        if value is None:
            return unavailable(
                metric,
                reason,
                source=SOURCE,
                scope="accelerator",
                subject=device.subject,
                label=label,
            )
        return measured(
            metric,
            value * scale,
            source=SOURCE,
            scope="accelerator",
            subject=device.subject,
            label=label,
        )

    used, total = _number(row, "used"), _number(row, "total")
    left = None if used is None or total is None else total - used
    yield tell(GPU_UTILIZATION, _number(row, "busy"), 1e-2)
    yield tell(GPU_MEMORY_USED, used, MIB)
    yield tell(GPU_MEMORY_TOTAL, total, MIB)
    yield tell(GPU_MEMORY_HEADROOM, left, MIB)
    yield tell(GPU_TEMPERATURE, _number(row, "celsius"))
    yield tell(GPU_CLOCK, _number(row, "clock"), 1e6, "sm")
    power = tell(POWER, _number(row, "watts"))
    yield power
    if (joules := _number(row, "joules")) is not None:
        yield tell(ENERGY, joules)
    else:
        yield estimated_energy(power, integrator, source=f"{SOURCE}, power over time")


def _number(row: Row, name: str) -> float | None:
    try:
        return float(row[name])
    except (KeyError, ValueError):
        return None
