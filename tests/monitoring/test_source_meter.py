"""A sound level meter: the lines it writes, the reports it answers, and the band of its class."""

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.probes.outside import SourceError
from monitoring.probes.sound import meter
from monitoring.probes.sound.hid import STRANGE, level_of
from monitoring.probes.sound.lines import level_in, weighting_in
from monitoring.probes.sound.meter import SerialMeter
from monitoring.sources import MeterSource
from tests.peers import meter as peer
from tests.peers.meter import Meter


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meter]:
    monkeypatch.setattr(meter, "PERIOD_SECONDS", 0.1)
    monkeypatch.setattr(meter, "SILENT_SECONDS", 0.5)
    with peer.serve(b"LAF 41.3 dBA\r\n") as running:
        yield running


def source(device: str, **fields: Any) -> MeterSource:
    return MeterSource(name="desk", device=device, **fields)


def refused(reader: SerialMeter) -> str:
    with pytest.raises(SourceError) as caught:
        reader.read()
    reader.close()
    return caught.value.reason


@pytest.mark.parametrize(
    ("grade", "width", "kind"),
    [("class 1", 1.1, "declared"), ("class 2", 1.4, "declared"), ("unknown", 3.0, "estimated")],
)
def test_a_level_comes_with_the_band_of_its_class(
    box: Meter, grade: Literal["class 1", "class 2", "unknown"], width: float, kind: str
) -> None:
    reader = SerialMeter(source(box.device, grade=grade))
    level, band = reader.read()
    reader.close()
    assert (level.metric, level.kind, level.scope, level.label) == (
        "noise_dba",
        "measured",
        "room",
        "1 m",
    )
    assert level.value == pytest.approx(41.3)
    assert (band.metric, band.value, band.kind) == ("noise_band_dba", width, kind)


def test_levels_of_a_second_are_averaged_by_their_energy(box: Meter) -> None:
    box.line = b"40.0\n60.0\n"
    reader = SerialMeter(source(box.device))
    level = reader.read()[0].value
    reader.close()
    assert level is not None
    assert 55 < level < 60  # Half the energy of 60 dB, and not 50.


def test_another_weighting_is_not_taken_for_a(box: Meter) -> None:
    box.line = b"LCF 55.0 dB\n"
    assert refused(SerialMeter(source(box.device))) == meter.WEIGHTING


def test_lines_without_a_level_are_said(box: Meter) -> None:
    box.line = b"BATTERY LOW\n"
    assert refused(SerialMeter(source(box.device))) == meter.NO_LEVEL


def test_silence_on_the_line_is_said(box: Meter) -> None:
    box.line = b""
    assert refused(SerialMeter(source(box.device))) == meter.SILENT


def test_a_line_that_is_cut_is_said_and_opened_anew(box: Meter) -> None:
    reader = SerialMeter(source(box.device))
    reader.read()
    box.hang_up.set()
    assert _cut(reader) == meter.CUT
    assert reader.read()[0].value == pytest.approx(41.3)
    reader.close()


def _cut(reader: SerialMeter) -> str:
    """What is said once the lines that were on their way have been read."""
    for _ in range(100):
        try:
            reader.read()
        except SourceError as error:
            return error.reason
    return ""


def test_a_device_that_is_not_there_is_said() -> None:
    assert refused(SerialMeter(source("/dev/ttyNOT-HERE"))) == meter.NO_DEVICE


@pytest.mark.parametrize(
    "device",
    ["spy://127.0.0.1:1?file=/tmp/x", "loop://", "/etc/passwd", "/dev/../etc/passwd", "COM1", ""],
)
def test_only_a_device_or_a_socket_is_opened(device: str) -> None:
    assert refused(SerialMeter(source(device))) == meter.BAD_DEVICE


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("41.3", 41.3),
        ("LAF 41.3 dBA", 41.3),
        ("2026-11-30 12:00:01 45,2 dB(A)", 45.2),
        ("CH1 38.6dB FAST", 38.6),
        ("ERR 7", None),
        ("999.9 dB", None),
        ("", None),
    ],
)
def test_a_level_is_found_in_a_line(line: str, level: float | None) -> None:
    assert level_in(line) == level


@pytest.mark.parametrize(
    ("line", "weighting"),
    [
        ("41.3 dBA", "A"),
        ("41.3 dB(C)", "C"),
        ("LCeq 41.3", "C"),
        ("LZF 3", "Z"),
        ("41.3 dB", ""),
        ("Level 41.3", ""),
    ],
)
def test_a_weighting_is_found_in_a_line(line: str, weighting: str) -> None:
    assert weighting_in(line) == weighting


@given(st.text(max_size=300))
def test_no_line_makes_the_reader_stumble(line: str) -> None:
    level = level_in(line)
    assert level is None or 10 <= level <= 160
    weighting_in(line)


def test_a_report_holds_tenths_and_flags() -> None:
    assert level_of(bytes([0x01, 0x9D, 0x40, 0, 0, 0, 0, 0])) == 41.3
    with pytest.raises(SourceError, match="another weighting"):
        level_of(bytes([0x01, 0x9D, 0x10, 0, 0, 0, 0, 0]))
    for strange in (b"", bytes(8), bytes([0xFF] * 7), bytes([0xFF, 0xFF, 0, 0, 0, 0, 0, 0])):
        with pytest.raises(SourceError) as caught:
            level_of(strange)
        assert caught.value.reason == STRANGE
