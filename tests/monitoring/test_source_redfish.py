"""A BMC over TLS: its values are right, whatever model it speaks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitoring.probes.redfish.reader import NO_ENERGY, NO_READING, RedfishReader
from monitoring.samples import Sample
from monitoring.sources import RedfishSource
from tests.peers import bmc as peer
from tests.peers.bmc import PASSWORD, USER, Bmc, Certificate, make_certificate, serve


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def bmc(certificate: Certificate) -> Iterator[Bmc]:
    with serve(certificate, peer.modern()) as running:
        yield running


def source(bmc: Bmc, certificate: Certificate, **fields: Any) -> RedfishSource:
    given = {"username": USER, "password": PASSWORD, "ca": certificate.pem, **fields}
    return RedfishSource(name="bmc", url=bmc.url, **given)


def read(source: RedfishSource) -> dict[str, Sample]:
    reader = RedfishReader(source)
    try:
        samples = reader.read()
    finally:
        reader.close()
    assert {(s.scope, s.source, s.subject) for s in samples} == {("host", "redfish: bmc", "node")}
    return {f"{s.metric}{{{s.label}}}" if s.label else s.metric: s for s in samples}


def test_the_new_model_is_read(bmc: Bmc, certificate: Certificate) -> None:
    samples = read(source(bmc, certificate))
    assert samples["power_watts"].value == 412.5
    assert samples["energy_joules_total"].value == 12.5 * 3.6e6
    assert samples["inlet_temperature_celsius"].value == 24.5
    assert samples["fan_speed_rpm"].value == 4200
    assert samples["fan_speed_rpm{Fan 1}"].value == 4200
    assert samples["temperature_celsius"].value == 41
    assert samples["temperature_celsius{Board}"].value == 38


def test_a_fan_without_a_count_is_absent_and_a_missing_one_is_not_listed(
    bmc: Bmc, certificate: Certificate
) -> None:
    samples = read(source(bmc, certificate))
    fan = samples["fan_speed_rpm{Fan 2}"]
    assert (fan.value, fan.kind, fan.reason) == (None, "unavailable", NO_READING)
    assert "fan_speed_rpm{Fan 3}" not in samples


def test_chassis_inside_each_other_are_not_added_up(bmc: Bmc, certificate: Certificate) -> None:
    assert read(source(bmc, certificate))["power_watts"].value == 412.5


def test_the_old_model_is_read(certificate: Certificate) -> None:
    with serve(certificate, peer.old()) as bmc:
        samples = read(source(bmc, certificate))
    assert samples["power_watts"].value == 240
    assert samples["energy_joules_total"].reason == NO_ENERGY
    assert samples["inlet_temperature_celsius"].value == 23
    assert samples["temperature_celsius"].value == 61
    assert samples["temperature_celsius{PCIe}"].reason == NO_READING
    assert samples["fan_speed_rpm{Fan1A}"].value == 5400
    assert samples["fan_speed_rpm{Fan2A}"].value is None  # Told in percent.


def test_a_list_of_sensors_is_read(certificate: Certificate) -> None:
    with serve(certificate, peer.sensors()) as bmc:
        samples = read(source(bmc, certificate))
    assert samples["power_watts"].value == 175
    assert samples["energy_joules_total"].value == 7.2e6
    assert samples["fan_speed_rpm"].value == 3000
    assert samples["inlet_temperature_celsius"].value == 21


def test_useless_sensors_are_asked_once(certificate: Certificate) -> None:
    with serve(certificate, peer.sensors()) as bmc:
        reader = RedfishReader(source(bmc, certificate))
        reader.read()
        reader.read()
        reader.close()
    asked = bmc.paths()
    assert asked.count(f"{peer.CHASSIS}/Sensors/volts") == 1
    assert asked.count(f"{peer.CHASSIS}/Sensors/inlet") == 2


def test_power_supplies_are_added_up_when_nothing_tells_the_whole(
    certificate: Certificate,
) -> None:
    tree = peer.supplies()
    with serve(certificate, tree) as bmc:
        assert read(source(bmc, certificate))["power_watts"].value == 255.5
        tree[f"{peer.CHASSIS}/Supplies/1/Metrics"] = {}
        assert read(source(bmc, certificate))["power_watts"].value is None


def test_a_tree_of_wrong_types_gives_absent_values_and_no_error(certificate: Certificate) -> None:
    tree = peer.old()
    tree[f"{peer.CHASSIS}/Power"] = {"PowerControl": "many", "x": [1]}
    tree[f"{peer.CHASSIS}/Thermal"] = {
        "Fans": [7, {"Name": 4, "Reading": "fast"}],
        "Temperatures": {"Name": "Inlet"},
    }
    with serve(certificate, tree) as bmc:
        samples = read(source(bmc, certificate))
    assert {sample.value for sample in samples.values()} == {None}
    assert all(sample.reason for sample in samples.values())


@pytest.mark.parametrize("auth", ["session", "basic"])
def test_both_ways_to_sign_in_work_and_a_session_is_ended(
    bmc: Bmc, certificate: Certificate, auth: str
) -> None:
    assert read(source(bmc, certificate, auth=auth))["power_watts"].value == 412.5
    assert not bmc.sessions
    assert any(method == "DELETE" for method, _path in bmc.requests) == (auth == "session")


def test_one_session_serves_all_rounds(bmc: Bmc, certificate: Certificate) -> None:
    reader = RedfishReader(source(bmc, certificate))
    for _ in range(3):
        reader.read()
    reader.close()
    assert [method for method, _path in bmc.requests].count("POST") == 1


def test_a_pinned_certificate_needs_no_authority(
    bmc: Bmc, certificate: Certificate, tmp_path: Path
) -> None:
    pinned = source(bmc, certificate, ca="", fingerprint=certificate.fingerprint)
    assert read(pinned)["power_watts"].value == 412.5
