"""Temperatures, fans and board power from a tree of files like the kernel's."""

from collections.abc import Callable
from pathlib import Path

import pytest

from monitoring.probes.roots import Roots
from monitoring.probes.sensors import BoardPowerProbe, ThermalProbe
from monitoring.samples import Sample

Chip = Callable[..., None]


@pytest.fixture
def chip(tmp_path: Path) -> Chip:
    """Writes one hwmon chip: its number, its name, and its files."""

    def write(number: int, name: str, **files: str) -> None:
        folder = tmp_path / f"class/hwmon/hwmon{number}"
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        for file, text in files.items():
            (folder / file).write_text(f"{text}\n")

    return write


def heat(root: Path) -> dict[tuple[str, str], Sample]:
    samples = ThermalProbe(Roots(sysfs=root)).read()
    return {(sample.metric, sample.label): sample for sample in samples}


def board(root: Path) -> tuple[Sample, Sample]:
    power, energy = BoardPowerProbe(Roots(sysfs=root)).read()
    return power, energy


def test_nothing_is_no_zero(tmp_path: Path) -> None:
    samples = heat(tmp_path)
    reasons = {metric: sample.reason for (metric, _), sample in samples.items()}
    assert reasons == {
        "temperature_celsius": "This machine shows no temperature sensor.",
        "inlet_temperature_celsius": "No sensor of this machine says that it is at the air inlet.",
        "fan_speed_rpm": "This machine shows no fan.",
    }
    assert all(sample.value is None for sample in samples.values())


def test_every_sensor_has_its_name_and_the_hottest_has_none(tmp_path: Path, chip: Chip) -> None:
    chip(0, "coretemp", temp1_input="45000", temp1_label="Package id 0", temp10_input="47500")
    chip(1, "nvme", temp1_input="38850", temp1_label="Composite")
    chip(2, "nvme", temp1_input="41000", temp1_label="Composite")
    chip(10, "acpitz", temp1_input="-5000")
    temperatures = {
        label: sample.value
        for (metric, label), sample in heat(tmp_path).items()
        if metric == "temperature_celsius"
    }
    assert temperatures == {
        "": 47.5,
        "coretemp Package id 0": 45.0,
        "coretemp temp10": 47.5,
        "nvme Composite (hwmon1)": 38.85,
        "nvme Composite (hwmon2)": 41.0,
        "acpitz temp1": -5.0,
    }


def test_a_standing_fan_is_a_zero_and_one_that_cannot_be_read_is_none(
    tmp_path: Path, chip: Chip
) -> None:
    chip(0, "nct6775", fan1_input="0", fan2_input="what?", fan2_label="Rear")
    samples = heat(tmp_path)
    assert samples["fan_speed_rpm", "nct6775 fan1"].value == 0.0
    rear = samples["fan_speed_rpm", "nct6775 Rear"]
    assert (rear.value, rear.reason) == (None, "The sensor's driver gave no value.")
    assert samples["fan_speed_rpm", ""].value == 0.0


@pytest.mark.parametrize("name", ["Inlet Temp", "intake", "Ambient 1"])
def test_the_air_inlet_is_known_by_its_name(tmp_path: Path, chip: Chip, name: str) -> None:
    chip(0, "bmc", temp1_input="24000", temp1_label=name, temp2_input="60000")
    assert heat(tmp_path)["inlet_temperature_celsius", ""].value == 24.0


def test_without_hwmon_the_thermal_zones_are_read(tmp_path: Path) -> None:
    for number, kind in enumerate(["acpitz", "acpitz", "x86_pkg_temp"]):
        zone = tmp_path / f"class/thermal/thermal_zone{number}"
        zone.mkdir(parents=True)
        (zone / "type").write_text(f"{kind}\n")
        (zone / "temp").write_text(f"{40000 + number * 1000}\n")
    samples = heat(tmp_path)
    assert samples["temperature_celsius", ""].value == 42.0
    assert samples["temperature_celsius", "acpitz (thermal_zone1)"].value == 41.0
    assert samples["temperature_celsius", ""].source == "host: thermal zones"


@pytest.mark.parametrize(
    ("files", "watts"),
    [
        ({"power1_average": "152340000", "power1_oem_info": "Module Power Socket 0"}, 152.34),
        ({"power1_input": "88000000", "power1_label": "System Power"}, 88.0),
        ({"power1_average": "1000000", "power1_input": "9", "power1_label": "total"}, 1.0),
        (
            {
                "power1_average": "100000000",
                "power1_label": "Module Power Socket 0",
                "power2_average": "120000000",
                "power2_label": "Module Power Socket 1",
                "power3_average": "60000000",
                "power3_label": "Grace Power Socket 0",
            },
            220.0,
        ),
    ],
)
def test_what_the_whole_board_draws(
    tmp_path: Path, chip: Chip, files: dict[str, str], watts: float
) -> None:
    chip(0, "power", **files)
    power, energy = board(tmp_path)
    assert power.value == pytest.approx(watts)
    assert (power.kind, power.scope) == ("measured", "host")
    assert (energy.value, energy.kind, energy.scope) == (0.0, "estimated", "host")


def test_a_part_is_not_taken_for_the_whole(tmp_path: Path, chip: Chip) -> None:
    chip(0, "amdgpu", power1_average="30000000", power1_label="PPT")
    power, energy = board(tmp_path)
    assert power.reason == "No sensor of this machine measures what the whole board draws."
    assert energy.value is None


def test_half_of_two_power_supplies_is_not_the_whole(tmp_path: Path, chip: Chip) -> None:
    chip(0, "pmbus", power1_input="100000000", power1_label="PSU1", power2_label="PSU2")
    (tmp_path / "class/hwmon/hwmon0/power2_input").write_text("no reading")
    power, _energy = board(tmp_path)
    assert (power.value, power.reason) == (None, "The sensor's driver gave no value.")
