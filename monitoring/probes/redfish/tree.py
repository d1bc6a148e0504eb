"""What a chassis tells, wherever in its tree it stands. Foreign documents are never trusted to have
the right types."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from monitoring.probes.redfish.client import path_of

JOULES_PER_KWH = 3.6e6
INTAKE = "Intake"


@dataclass
class Found:
    """None stands for a sensor that is there but gives no reading."""

    power: float | None = None
    joules: float | None = None
    fans: dict[str, float | None] = field(default_factory=dict)
    temperatures: dict[str, float | None] = field(default_factory=dict)
    inlets: list[float] = field(default_factory=list)


def number(value: Any) -> float | None:
    """A finite number, bare or as the `Reading` of an excerpt."""
    if isinstance(value, Mapping):
        value = value.get("Reading")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # A whole number that no float holds.
        return None


def members(document: Mapping[str, Any], name: str = "Members") -> list[dict[str, Any]]:
    listed = document.get(name)
    return (
        [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )


def paths(document: Mapping[str, Any]) -> list[str]:
    """Where the members of a collection are."""
    found = (path_of({"member": entry}, "member") for entry in members(document))
    return [path for path in found if path]


def present(entry: Mapping[str, Any]) -> bool:
    status = entry.get("Status")
    state = status.get("State") if isinstance(status, Mapping) else None
    return state not in ("Absent", "Disabled")


def environment(document: dict[str, Any], found: Found) -> None:
    """EnvironmentMetrics: the sums, and fans with their speed."""
    found.power = number(document.get("PowerWatts"))
    joules = number(document.get("EnergyJoules"))
    kwh = number(document.get("EnergykWh"))
    found.joules = joules if kwh is None else kwh * JOULES_PER_KWH
    for place, fan in enumerate(members(document, "FanSpeedsPercent")):
        rpm = number(fan.get("SpeedRPM"))
        if rpm is not None:
            found.fans[_name(fan, "DeviceName", f"Fan{place}")] = rpm


def power(document: dict[str, Any], found: Found) -> None:
    """The old Power resource. Its first control is the whole chassis, later ones are its parts."""
    for control in members(document, "PowerControl"):
        watts = number(control.get("PowerConsumedWatts"))
        if watts is not None:
            found.power = watts
            return


def thermal(document: dict[str, Any], found: Found) -> None:
    """The old Thermal resource: every fan and temperature in one document."""
    for place, fan in enumerate(members(document, "Fans")):
        if present(fan):
            name = _name(fan, "Name", _name(fan, "FanName", f"Fan{place}"))
            rpm = fan.get("ReadingUnits", "RPM") == "RPM"
            found.fans[name] = number(fan.get("Reading")) if rpm else None
    for place, sensor in enumerate(members(document, "Temperatures")):
        if present(sensor):
            celsius = number(sensor.get("ReadingCelsius"))
            _temperature(found, sensor, _name(sensor, "Name", f"Temp{place}"), celsius)


def thermal_metrics(document: dict[str, Any], found: Found) -> None:
    """The new one: a summary by place, and single readings."""
    summary = document.get("TemperatureSummaryCelsius")
    for place, excerpt in summary.items() if isinstance(summary, dict) else ():
        celsius = number(excerpt)
        if celsius is not None and place != INTAKE:
            found.temperatures[place] = celsius
        elif celsius is not None:
            found.inlets.append(celsius)
    for place, sensor in enumerate(members(document, "TemperatureReadingsCelsius")):
        name = _name(sensor, "DeviceName", f"Temp{place}")
        _temperature(found, sensor, name, number(sensor))


def fan(document: dict[str, Any], found: Found) -> None:
    """One Fan resource of the new model."""
    if present(document):
        speed = document.get("SpeedPercent")
        rpm = number(speed.get("SpeedRPM")) if isinstance(speed, dict) else None
        found.fans[_name(document, "Name", "Fan")] = rpm


def supply_watts(document: dict[str, Any]) -> float | None:
    """What one power supply draws."""
    return number(document.get("InputPowerWatts"))


def useful(sensor: Mapping[str, Any]) -> bool:
    return sensor.get("ReadingType") in ("Temperature", "Rotational") or _whole(sensor)


def sensor(document: dict[str, Any], found: Found) -> None:
    """One Sensor resource."""
    if not present(document):
        return
    value, kind = number(document), document.get("ReadingType")
    name = _name(document, "Name", _name(document, "Id", "Sensor"))
    if kind == "Temperature":
        _temperature(found, document, name, value)
    elif kind == "Rotational":
        found.fans[name] = value if document.get("ReadingUnits") in ("RPM", "{rev}/min") else None
    elif _whole(document) and kind == "Power":
        found.power = value if found.power is None else found.power
    elif _whole(document) and value is not None and found.joules is None:
        found.joules = value * (JOULES_PER_KWH if kind == "EnergykWh" else 1.0)


def _whole(sensor: Mapping[str, Any]) -> bool:
    """Whether it is about the chassis and not one of its parts."""
    kinds = ("Power", "EnergykWh", "EnergyJoules")
    return sensor.get("ReadingType") in kinds and sensor.get("PhysicalContext") == "Chassis"


def _temperature(found: Found, entry: Mapping[str, Any], name: str, celsius: float | None) -> None:
    found.temperatures[name] = celsius
    if entry.get("PhysicalContext") == INTAKE and celsius is not None:
        found.inlets.append(celsius)


def _name(entry: Mapping[str, Any], key: str, otherwise: str) -> str:
    value = entry.get(key)
    return value.strip()[:50] if isinstance(value, str) and value.strip() else otherwise


def told_apart(
    by_chassis: Mapping[str, Mapping[str, float | None]],
) -> Iterator[tuple[str, float | None]]:
    """Sensors of all chassis; one whose name two of them use gets its chassis before it."""
    seen: dict[str, int] = {}
    for sensors in by_chassis.values():
        for name in sensors:
            seen[name] = seen.get(name, 0) + 1
    for chassis, sensors in by_chassis.items():
        for name, value in sensors.items():
            yield (name if seen[name] == 1 else f"{chassis}/{name}"[:60]), value
