"""Rounds through a BMC's chassis: as few requests as its model allows, once every few seconds."""

import time
from collections.abc import Mapping
from typing import Any

from monitoring.metrics import ENERGY, FAN_SPEED, INLET_TEMPERATURE, POWER, TEMPERATURE, Metric
from monitoring.probes.outside import SourceError
from monitoring.probes.redfish import tree
from monitoring.probes.redfish.client import SESSION_ENDED, SLOW, STRANGE, Bmc, path_of
from monitoring.probes.redfish.tree import Found
from monitoring.samples import Sample, gettext_noop, measured, unavailable
from monitoring.sources import RedfishSource

ROUND_SECONDS = 30.0
LOOK_AGAIN_SECONDS = 600.0
"""How long the list of chassis and of useful sensors is believed."""
MOST_CHASSIS = 16
MOST_SENSORS = 64
MOST_FANS = 32
MOST_TEMPERATURES = 32

NO_POWER = gettext_noop("The BMC tells no power of the whole box.")
NO_ENERGY = gettext_noop("The BMC counts no energy.")
NO_INLET = gettext_noop("The BMC has no sensor at the air intake.")
NO_FANS = gettext_noop("The BMC tells no fan's speed.")
NO_TEMPERATURES = gettext_noop("The BMC tells no temperature.")
NO_READING = gettext_noop("The BMC knows the sensor and gives no reading of it.")


class RedfishReader:
    def __init__(self, source: RedfishSource) -> None:
        self.period = source.seconds
        self._source = source
        self._bmc: Bmc | None = None
        self._chassis: dict[str, dict[str, Any]] = {}
        self._sensors: dict[str, list[str]] = {}
        self._looked = 0.0
        self._metered = ""
        """The chassis whose power and energy stand for the box: a counter must not change hands."""

    def read(self) -> list[Sample]:
        self._until = time.monotonic() + ROUND_SECONDS
        try:
            return self._samples(self._round(self._bmc or self._open()))
        except SourceError as error:
            if error.reason == SESSION_ENDED:
                self.close()
            raise

    def close(self) -> None:
        if self._bmc is not None:
            self._bmc.close()
            self._bmc = None

    def _open(self) -> Bmc:
        self._bmc = Bmc(self._source)
        self._looked = 0.0
        return self._bmc

    def _get(self, bmc: Bmc, path: str) -> dict[str, Any]:
        if time.monotonic() > self._until:
            raise SourceError(SLOW)
        return (bmc.get(path) if path else None) or {}

    def _round(self, bmc: Bmc) -> dict[str, Found]:
        now = time.monotonic()
        if not self._chassis or now - self._looked > LOOK_AGAIN_SECONDS or not self._looked:
            self._look(bmc)
            self._looked = now
        return {name: self._read_chassis(bmc, name) for name in self._chassis}

    def _look(self, bmc: Bmc) -> None:
        collection = self._get(bmc, path_of(bmc.root, "Chassis") or "/redfish/v1/Chassis")
        found = {}
        for path in tree.paths(collection)[:MOST_CHASSIS]:
            if document := self._get(bmc, path):
                found[path.rstrip("/").rsplit("/", 1)[-1]] = document
        if not found:
            raise SourceError(STRANGE)
        self._chassis, self._sensors = found, {}

    def _read_chassis(self, bmc: Bmc, name: str) -> Found:
        chassis, found = self._chassis[name], Found()
        tree.environment(self._get(bmc, path_of(chassis, "EnvironmentMetrics")), found)
        if found.power is None:
            tree.power(self._get(bmc, path_of(chassis, "Power")), found)
        if found.power is None and "PowerSubsystem" in chassis:
            found.power = self._supplies(bmc, chassis)
        if "Thermal" in chassis:
            tree.thermal(self._get(bmc, path_of(chassis, "Thermal")), found)
        elif "ThermalSubsystem" in chassis:
            self._thermal_subsystem(bmc, chassis, found)
        if found.power is None or not found.fans or not found.temperatures:
            self._read_sensors(bmc, name, found)
        return found

    def _supplies(self, bmc: Bmc, chassis: dict[str, Any]) -> float | None:
        """Of all supplies together; None when one does not say what it draws."""
        subsystem = self._get(bmc, path_of(chassis, "PowerSubsystem"))
        watts = []
        for path in tree.paths(self._get(bmc, path_of(subsystem, "PowerSupplies"))):
            supply = self._get(bmc, path)
            if tree.present(supply):
                watts.append(tree.supply_watts(self._get(bmc, path_of(supply, "Metrics"))))
        known = [drawn for drawn in watts if drawn is not None]
        return sum(known) if known and len(known) == len(watts) else None

    def _thermal_subsystem(self, bmc: Bmc, chassis: dict[str, Any], found: Found) -> None:
        subsystem = self._get(bmc, path_of(chassis, "ThermalSubsystem"))
        tree.thermal_metrics(self._get(bmc, path_of(subsystem, "ThermalMetrics")), found)
        if not found.fans:
            for path in tree.paths(self._get(bmc, path_of(subsystem, "Fans")))[:MOST_FANS]:
                tree.fan(self._get(bmc, path), found)

    def _read_sensors(self, bmc: Bmc, name: str, found: Found) -> None:
        listed = self._sensors.get(name)
        if listed is None:
            collection = self._get(bmc, path_of(self._chassis[name], "Sensors"))
            listed = tree.paths(collection)[:MOST_SENSORS]
        useful = []
        for path in listed:
            document = self._get(bmc, path)
            if tree.useful(document):
                useful.append(path)
                tree.sensor(document, found)
        self._sensors[name] = useful

    def _samples(self, found: Mapping[str, Found]) -> list[Sample]:
        whole = found.get(self._metered_chassis(found), Found())
        fans = dict(tree.told_apart({name: one.fans for name, one in found.items()}))
        temperatures = dict(tree.told_apart({n: one.temperatures for n, one in found.items()}))
        inlets = [celsius for one in found.values() for celsius in one.inlets]
        return [
            self._sample(POWER, whole.power, NO_POWER),
            self._sample(ENERGY, whole.joules, NO_ENERGY),
            self._sample(INLET_TEMPERATURE, max(inlets, default=None), NO_INLET),
            *self._many(FAN_SPEED, fans, NO_FANS, MOST_FANS),
            *self._many(TEMPERATURE, temperatures, NO_TEMPERATURES, MOST_TEMPERATURES),
        ]

    def _metered_chassis(self, found: Mapping[str, Found]) -> str:
        """Chassis contain each other, so they are not added up: the whole is the largest."""
        if self._metered not in found:
            powers = {name: one.power for name, one in found.items() if one.power is not None}
            counters = [name for name, one in found.items() if one.joules is not None]
            largest = max(powers, key=lambda name: powers[name], default="")
            self._metered = largest or next(iter(counters), "")
        return self._metered

    def _many(
        self, metric: Metric, values: Mapping[str, float | None], none: str, most: int
    ) -> list[Sample]:
        """The highest, and each by its name."""
        known = [value for value in values.values() if value is not None]
        return [
            self._sample(metric, max(known, default=None), none),
            *(
                self._sample(metric, value, NO_READING, label)
                for label, value in list(values.items())[:most]
            ),
        ]

    def _sample(self, metric: Metric, value: float | None, reason: str, label: str = "") -> Sample:
        origin = self._source.origin
        if value is None:
            return unavailable(metric, reason, source=origin, scope="host", label=label)
        return measured(metric, value, source=origin, scope="host", label=label)
