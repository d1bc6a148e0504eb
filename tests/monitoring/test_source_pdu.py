"""Watts and joules at the plug, over SNMP: units, outlets, and what is not there."""

from collections.abc import Iterator
from typing import Any

import pytest

from monitoring.probes.outside import SourceError
from monitoring.probes.pdu import snmp
from monitoring.probes.pdu.profiles import NOT_ASKED, NOT_METERED, ONE_SILENT, UNKNOWN_OUTLET
from monitoring.probes.pdu.reader import PduReader
from monitoring.samples import Sample
from monitoring.sources import PduSource
from tests.peers import pdu as peer
from tests.peers.pdu import AUTH_KEY, COMMUNITY, PRIVACY_KEY, USER, Pdu

APC = "1.3.6.1.4.1.318.1.1.26"
RARITAN = "1.3.6.1.4.1.13742.6"
V3 = {"community": "", "user": USER, "auth_key": AUTH_KEY, "privacy_key": PRIVACY_KEY}


@pytest.fixture(scope="module")
def running() -> Iterator[Pdu]:
    with peer.serve() as pdu:
        yield pdu


@pytest.fixture
def pdu(running: Pdu, monkeypatch: pytest.MonkeyPatch) -> Pdu:
    monkeypatch.setattr(snmp, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(snmp, "RETRIES", 0)
    running.numbers.clear()
    running.asked.clear()
    return running


def source(pdu: Pdu, **fields: Any) -> PduSource:
    given = {"profile": "apc", "community": COMMUNITY, "port": pdu.port, **fields}
    return PduSource(name="rack", host="127.0.0.1", **given)


def read(source: PduSource) -> dict[str, Sample]:
    reader = PduReader(source)
    try:
        samples = reader.read()
    finally:
        reader.close()
    assert {(s.scope, s.source) for s in samples} == {("wall", "pdu: rack")}
    return {sample.metric: sample for sample in samples}


def refused(source: PduSource) -> str:
    reader = PduReader(source)
    with pytest.raises(SourceError) as caught:
        reader.read()
    reader.close()
    return caught.value.reason


def test_a_whole_apc_pdu_counts_hundredths_of_kilowatts(pdu: Pdu) -> None:
    pdu.numbers |= {f"{APC}.4.3.1.5.1": 14, f"{APC}.4.3.1.9.1": 1234}
    samples = read(source(pdu))
    assert samples["power_watts"].value == 140
    assert samples["energy_joules_total"].value == pytest.approx(123.4 * 3.6e6)


def test_outlets_are_added_up(pdu: Pdu) -> None:
    for outlet, watts, tenths in ((3, 120, 10), (4, 95, 25)):
        pdu.numbers |= {f"{APC}.9.4.3.1.7.{outlet}": watts, f"{APC}.9.4.3.1.11.{outlet}": tenths}
    samples = read(source(pdu, outlets=(3, 4)))
    assert samples["power_watts"].value == 215
    assert samples["energy_joules_total"].value == pytest.approx(3.5 * 3.6e6)


def test_an_outlet_that_is_not_metered_is_absent_and_never_negative(pdu: Pdu) -> None:
    pdu.numbers |= {f"{APC}.9.4.3.1.7.3": -1, f"{APC}.9.4.3.1.11.3": -1}
    samples = read(source(pdu, outlets=(3,)))
    assert {sample.value for sample in samples.values()} == {None}
    assert {sample.reason for sample in samples.values()} == {NOT_METERED}


def test_one_silent_outlet_makes_the_sum_absent(pdu: Pdu) -> None:
    pdu.numbers |= {f"{APC}.9.4.3.1.7.3": 120}
    samples = read(source(pdu, outlets=(3, 9)))
    assert samples["power_watts"].reason == ONE_SILENT
    assert samples["energy_joules_total"].reason == UNKNOWN_OUTLET


def test_raritan_tells_its_decimal_digits(pdu: Pdu) -> None:
    pdu.numbers |= {
        f"{RARITAN}.5.4.3.1.4.1.2.5": 1234,
        f"{RARITAN}.3.5.4.1.7.1.2.5": 1,
        f"{RARITAN}.5.4.3.1.4.1.2.8": 5000,
        f"{RARITAN}.3.5.4.1.7.1.2.8": 0,
    }
    samples = read(source(pdu, profile="raritan", outlets=(2,)))
    assert samples["power_watts"].value == pytest.approx(123.4)
    assert samples["energy_joules_total"].value == 5000 * 3600


def test_a_whole_raritan_is_its_inlet(pdu: Pdu) -> None:
    pdu.numbers |= {f"{RARITAN}.5.2.3.1.4.1.1.5": 330, f"{RARITAN}.3.3.4.1.7.1.1.5": 0}
    assert read(source(pdu, profile="raritan"))["power_watts"].value == 330


def test_any_other_pdu_by_its_identifiers(pdu: Pdu) -> None:
    pdu.numbers |= {"1.3.6.1.4.1.99.1.4": 12, "1.3.6.1.4.1.99.1.5": 30}
    custom = source(
        pdu,
        profile="custom",
        outlets=(4, 5),
        power_oid=".1.3.6.1.4.1.99.1.{outlet}",
        power_factor=0.1,
    )
    samples = read(custom)
    assert samples["power_watts"].value == pytest.approx(4.2)
    assert samples["energy_joules_total"].reason == NOT_ASKED


def test_one_number_for_all_outlets_is_counted_once(pdu: Pdu) -> None:
    pdu.numbers |= {"1.3.6.1.4.1.99.7.0": 50}
    custom = source(pdu, profile="custom", outlets=(1, 2), power_oid="1.3.6.1.4.1.99.7.0")
    assert read(custom)["power_watts"].value == 50


def test_version_3_signs_and_seals(pdu: Pdu) -> None:
    pdu.numbers |= {f"{APC}.4.3.1.5.1": 14}
    assert read(source(pdu, **V3))["power_watts"].value == 140


@pytest.mark.parametrize(
    "wrong",
    [
        {"user": "somebody"},
        {"auth_key": "not-the-right-one"},
        {"privacy_key": "not-the-right-one"},
    ],
)
def test_version_3_refuses_who_is_not_known(pdu: Pdu, wrong: dict[str, str]) -> None:
    # A wrong privacy key makes a message that the agent cannot even refuse.
    expected = {snmp.REFUSED, snmp.SILENT} if "privacy_key" in wrong else {snmp.REFUSED}
    assert refused(source(pdu, **(V3 | wrong))) in expected


def test_a_short_key_is_said_before_anything_is_asked(pdu: Pdu) -> None:
    assert refused(source(pdu, **(V3 | {"auth_key": "short"}))) == snmp.BAD_KEYS
    assert pdu.asked == []


def test_a_wrong_community_is_met_with_silence(pdu: Pdu) -> None:
    assert refused(source(pdu, community="public")) == snmp.SILENT


def test_a_host_nobody_knows_is_said(pdu: Pdu) -> None:
    lost = PduSource(name="rack", host="pdu.invalid", profile="apc", community=COMMUNITY)
    assert refused(lost) == snmp.UNKNOWN_HOST


def test_a_pdu_that_comes_back_is_read_again(pdu: Pdu) -> None:
    reader = PduReader(source(pdu, outlets=(3,)))
    assert reader.read()[0].reason == UNKNOWN_OUTLET
    pdu.numbers |= {f"{APC}.9.4.3.1.7.3": 120}
    assert reader.read()[0].value == 120
    reader.close()


def test_keys_are_in_no_representation(pdu: Pdu) -> None:
    text = repr(source(pdu, **V3)) + repr(source(pdu))
    for word in (AUTH_KEY, PRIVACY_KEY, COMMUNITY):
        assert word not in text


def test_a_counter_that_starts_over_takes_nothing_from_the_sum(pdu: Pdu) -> None:
    energy = f"{APC}.9.4.3.1.11"
    pdu.numbers |= {f"{energy}.3": 5000, f"{energy}.4": 3000}
    reader = PduReader(source(pdu, outlets=(3, 4)))
    told = []
    for left, right in ((5000, 3000), (5001, 0), (5002, 2)):
        pdu.numbers |= {f"{energy}.3": left, f"{energy}.4": right}
        [joules] = [s.value for s in reader.read() if s.metric == "energy_joules_total"]
        told.append(joules)
    reader.close()
    tenth = 0.1 * 3.6e6
    assert told == pytest.approx([8000 * tenth, 8001 * tenth, 8004 * tenth])


@pytest.mark.parametrize("digits", [{}, {f"{RARITAN}.3.3.4.1.7.1.1.5": 9}])
def test_a_number_whose_decimal_digits_are_unknown_is_absent(
    pdu: Pdu, digits: dict[str, int]
) -> None:
    pdu.numbers |= {f"{RARITAN}.5.2.3.1.4.1.1.5": 3300, **digits}
    sample = read(source(pdu, profile="raritan"))["power_watts"]
    assert (sample.value, sample.reason) == (None, UNKNOWN_OUTLET)
