"""Temperatures, fans and board power as the kernel's hwmon drivers show them."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from monitoring.metrics import (
    ENERGY,
    FAN_SPEED,
    INLET_TEMPERATURE,
    POWER,
    TEMPERATURE,
    Metric,
)
from monitoring.probes.energy import Integrator, estimated_energy
from monitoring.probes.roots import Roots, number_of, text_of
from monitoring.samples import Sample, Scope, gettext_noop, measured, unavailable

NO_SENSOR = gettext_noop("This machine shows no temperature sensor.")
NO_FAN = gettext_noop("This machine shows no fan.")
NO_INLET = gettext_noop("No sensor of this machine says that it is at the air inlet.")
NO_METER = gettext_noop("No sensor of this machine measures what the whole board draws.")
SILENT = gettext_noop("The sensor's driver gave no value.")

INLET = re.compile(r"\b(inlet|intake|ambient)\b", re.IGNORECASE)
BOARD = re.compile(r"power_meter|\b(system|total|board|chassis|module|psu)", re.IGNORECASE)
LOOK_SECONDS = 30.0
"""How long it takes until a sensor whose driver is loaded late is noticed."""
MOST_SENSORS = 128
"""Of a kind; beyond it only the headline is told."""


class Sensor(NamedTuple):
    label: str
    value: float | None


class Sensors:
    """All of a kind (`temp`, `fan`, `power`), named after their chip and their own label, with the
    chip's number where two would be called the same. Which there are is looked up now and then;
    only their values are read each time."""

    def __init__(self, roots: Roots, kind: str, suffixes: Sequence[str], scale: float) -> None:
        self._roots = roots
        self._kind = kind
        self._suffixes = suffixes
        self._scale = scale
        self._files: list[tuple[str, str]] = []
        """Label and path."""
        self._due = 0.0

    def read(self) -> list[Sensor]:
        now = time.monotonic()
        if now >= self._due:
            self._files, self._due = self._find(), now + LOOK_SECONDS
        return [Sensor(label, self._value(path)) for label, path in self._files]

    def _value(self, path: str) -> float | None:
        raw = number_of(path)
        return None if raw is None else raw * self._scale

    def _find(self) -> list[tuple[str, str]]:
        """The first suffix that a sensor has is the one that is read."""
        found: list[tuple[str, str, str]] = []
        for chip in self._roots.hwmon():
            name = text_of(chip / "name") or chip.name
            for channel in _channels(chip, self._kind, self._suffixes):
                files = [chip / f"{channel}_{suffix}" for suffix in self._suffixes]
                path = next(file for file in files if file.exists())
                found.append((f"{name} {_label(chip, channel)}", chip.name, str(path)))
        names = [name for name, _chip, _path in found]
        return [
            (name if names.count(name) == 1 else f"{name} ({chip})", path)
            for name, chip, path in found
        ]


def _label(chip: Path, channel: str) -> str:
    """ACPI's power meters call theirs differently."""
    names = (text_of(chip / f"{channel}_{suffix}") for suffix in ("label", "oem_info"))
    return next((name for name in names if name), channel)


def _channels(chip: Path, kind: str, suffixes: Sequence[str]) -> Iterator[str]:
    """`temp1`, `temp2`, `temp10`, in this order."""
    pattern = re.compile(rf"({kind}(\d+))_({'|'.join(suffixes)})")
    matches = [pattern.fullmatch(path.name) for path in chip.glob(f"{kind}*")]
    channels = {match[1]: int(match[2]) for match in matches if match}
    yield from sorted(channels, key=channels.__getitem__)


class ThermalProbe:
    """Every sensor and fan under its name, the hottest and the fastest without one, the air inlet's
    where a sensor is called that. Without hwmon sensors the kernel's thermal zones are read."""

    name = "host: hwmon"
    scope: Scope = "host"
    metrics: Sequence[Metric] = (TEMPERATURE, INLET_TEMPERATURE, FAN_SPEED)

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._heat = Sensors(roots, "temp", ("input",), 1e-3)
        self._fans = Sensors(roots, "fan", ("input",), 1.0)

    def read(self) -> list[Sample]:
        heat, source = self._heat.read(), self.name
        if not heat and (zones := _zones(self._roots)):
            heat, source = zones, "host: thermal zones"
        fans = self._fans.read()
        inlets = [sensor for sensor in heat if INLET.search(sensor.label)]
        return [
            self._highest(TEMPERATURE, heat, NO_SENSOR, source),
            *self._each(TEMPERATURE, heat, source),
            self._highest(INLET_TEMPERATURE, inlets, NO_INLET, source),
            self._highest(FAN_SPEED, fans, NO_FAN, self.name),
            *self._each(FAN_SPEED, fans, self.name),
        ]

    def _highest(self, metric: Metric, found: Sequence[Sensor], absent: str, source: str) -> Sample:
        """A reading that the driver could not take is no zero."""
        values = [sensor.value for sensor in found if sensor.value is not None]
        if not values:
            reason = SILENT if found else absent
            return unavailable(metric, reason, source=source, scope=self.scope)
        return measured(metric, max(values), source=source, scope=self.scope)

    def _each(self, metric: Metric, found: Sequence[Sensor], source: str) -> Iterator[Sample]:
        for label, value in found[:MOST_SENSORS]:
            if value is None:
                yield unavailable(metric, SILENT, source=source, scope=self.scope, label=label)
            else:
                yield measured(metric, value, source=source, scope=self.scope, label=label)


def _zones(roots: Roots) -> list[Sensor]:
    """`acpitz` and the like; two of a type are told apart by their number."""
    zones = [(text_of(zone / "type") or zone.name, zone) for zone in roots.thermal_zones()]
    types = [name for name, _zone in zones]
    found = []
    for name, zone in zones:
        value = number_of(zone / "temp")
        label = name if types.count(name) == 1 else f"{name} ({zone.name})"
        found.append(Sensor(label, None if value is None else value / 1000))
    return found


class BoardPowerProbe:
    """What a sensor on the board measures of the whole of it, and the energy reckoned from that.

    A board may have many sensors, each for a part, and parts overlap: only those count whose name
    says that they are the whole, and only those are added up that differ in nothing but a number
    (two power supplies, two sockets).
    """

    name = "host: hwmon power"
    scope: Scope = "host"
    metrics: Sequence[Metric] = (POWER, ENERGY)

    def __init__(self, roots: Roots, clock: Callable[[], float] | None = None) -> None:
        self._sensors = Sensors(roots, "power", ("average", "input"), 1e-6)
        self._integrator = Integrator(1.0, clock)

    def read(self) -> list[Sample]:
        found = self._sensors.read()
        power = self._power([sensor for sensor in found if BOARD.search(sensor.label)])
        return [power, estimated_energy(power, self._integrator, source=self.name)]

    def _power(self, whole: Sequence[Sensor]) -> Sample:
        if not whole:
            return unavailable(POWER, NO_METER, source=self.name, scope=self.scope)
        groups: dict[str, list[Sensor]] = {}
        for sensor in whole:
            groups.setdefault(re.sub(r"\d+", "#", sensor.label), []).append(sensor)
        sums = [total for group in groups.values() if (total := _sum(group)) is not None]
        if not sums:
            return unavailable(POWER, SILENT, source=self.name, scope=self.scope)
        return measured(POWER, max(sums), source=self.name, scope=self.scope)


def _sum(group: Sequence[Sensor]) -> float | None:
    values = [sensor.value for sensor in group]
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
