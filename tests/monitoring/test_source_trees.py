"""Whatever a BMC answers, reading it never stumbles and never invents a number."""

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from monitoring.probes.redfish import tree
from monitoring.probes.redfish.tree import Found

NAMES = [
    "Name",
    "FanName",
    "DeviceName",
    "Reading",
    "ReadingCelsius",
    "ReadingUnits",
    "ReadingType",
    "SpeedRPM",
    "Status",
    "State",
    "PhysicalContext",
    "PowerWatts",
    "PowerConsumedWatts",
    "EnergykWh",
    "EnergyJoules",
    "Fans",
    "Temperatures",
    "Members",
    "PowerControl",
    "FanSpeedsPercent",
    "SpeedPercent",
    "TemperatureSummaryCelsius",
    "InputPowerWatts",
    "Intake",
    "TemperatureReadingsCelsius",
    "@odata.id",
]
WORDS = ("Temperature", "Rotational", "Power", "Chassis", "Intake", "RPM", "Absent", "/x", "@x")
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.sampled_from(WORDS)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=20,
)
RESOURCES = st.dictionaries(st.sampled_from(NAMES), DOCUMENTS, max_size=6)


@settings(max_examples=60)
@given(RESOURCES)
def test_any_document_can_be_read(document: dict[str, Any]) -> None:
    found = Found()
    for read in (
        tree.environment,
        tree.power,
        tree.thermal,
        tree.thermal_metrics,
        tree.fan,
        tree.sensor,
    ):
        read(document, found)
    numbers = [
        found.power,
        found.joules,
        tree.supply_watts(document),
        *found.fans.values(),
        *found.temperatures.values(),
        *found.inlets,
    ]
    assert all(number is None or math.isfinite(number) for number in numbers)
    assert all(path.startswith("/") for path in tree.paths(document))
    assert all(0 < len(name) <= 50 for name in (*found.fans, *found.temperatures))


def test_a_number_beyond_reason_is_none() -> None:
    assert tree.number(10**400) is None


def test_sensors_of_one_name_are_told_apart_by_their_chassis() -> None:
    fans: dict[str, dict[str, float | None]] = {"A": {"Fan 1": 1.0}, "B": {"Fan 1": 2.0, "F": 3.0}}
    assert dict(tree.told_apart(fans)) == {"A/Fan 1": 1.0, "B/Fan 1": 2.0, "F": 3.0}
