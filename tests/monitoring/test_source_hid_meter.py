"""A meter on USB: asked four times a second, and missed when it is unplugged."""

import sys
from types import ModuleType
from typing import Any

import pytest

from monitoring.probes.outside import SourceError
from monitoring.probes.sound import hid as probe
from monitoring.probes.sound.hid import HidMeter
from monitoring.probes.sound.meter import BAD_DEVICE, NO_DEVICE, SILENT
from monitoring.sources import MeterSource


class FakeHid(ModuleType):
    """The `hid` module with one device on it."""

    def __init__(self) -> None:
        super().__init__("hid")
        self.opened: list[tuple[int, int]] = []
        self.asked: list[bytes] = []
        self.report: list[int] | None = [0x01, 0x9D, 0x40, 0, 0, 0, 0, 0]
        self.present = True

    def device(self) -> "FakeDevice":
        return FakeDevice(self)


class FakeDevice:
    def __init__(self, bus: FakeHid) -> None:
        self._bus = bus

    def open(self, vendor: int, product: int) -> None:
        if not self._bus.present:
            raise OSError("open failed")
        self._bus.opened.append((vendor, product))

    def write(self, report: bytes) -> int:
        self._bus.asked.append(report)
        return len(report)

    def read(self, _length: int, _milliseconds: int) -> list[int]:
        if not self._bus.present:
            raise OSError("read error")
        return self._bus.report or []

    def close(self) -> None: ...


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> FakeHid:
    fake = FakeHid()
    monkeypatch.setitem(sys.modules, "hid", fake)
    monkeypatch.setattr(probe, "PERIOD_SECONDS", 0.01)
    return fake


def meter(device: str = "hid:64bd:74e3", **fields: Any) -> HidMeter:
    return HidMeter(MeterSource(name="usb", device=device, protocol="hid-gm1356", **fields))


def refused(reader: HidMeter) -> str:
    with pytest.raises(SourceError) as caught:
        reader.read()
    return caught.value.reason


def test_it_is_asked_and_answers(bus: FakeHid) -> None:
    reader = meter()
    assert reader.read()[0].value == pytest.approx(41.3)
    reader.close()
    assert bus.opened == [(0x64BD, 0x74E3)]
    assert {report[:2] for report in bus.asked} == {b"\x00\xb3"}


def test_it_is_opened_again_after_it_was_unplugged(bus: FakeHid) -> None:
    reader = meter()
    reader.read()
    bus.present = False
    assert refused(reader) == NO_DEVICE
    assert refused(reader) == NO_DEVICE
    bus.present = True
    assert reader.read()[0].value == pytest.approx(41.3)
    reader.close()


def test_no_answer_is_said(bus: FakeHid) -> None:
    bus.report = None
    assert refused(meter()) == SILENT


def test_a_device_must_be_named_by_its_numbers(bus: FakeHid) -> None:
    assert refused(meter("/dev/hidraw0")) == BAD_DEVICE
