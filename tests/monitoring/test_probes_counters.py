"""A sum of counters grows by what its parts grow by, whatever becomes of them."""

from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.probes.counters import Growing
from monitoring.probes.devices import Device
from monitoring.probes.host import NetworkProbe
from monitoring.probes.nvidia.events import FaultEvents
from monitoring.probes.xids import GRAVE, Xids

PARTS = st.dictionaries(st.sampled_from("abc"), st.floats(0, 1e12), max_size=3)


@given(st.lists(PARTS, max_size=8))
def test_the_sum_never_falls_and_grows_by_what_its_parts_do(
    readings: list[dict[str, float]],
) -> None:
    growing, told, expected = Growing(), 0.0, 0.0
    before: dict[str, float] = {}
    for parts in readings:
        for name, value in parts.items():
            old = before.get(name, 0.0)
            expected += value - old if value >= old else value
        before = parts
        total = growing.total(parts)
        assert total >= told * (1 - 1e-9)
        assert total == pytest.approx(expected)
        told = total


def test_an_interface_that_goes_takes_no_bytes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container ends, and its interface with it: the other's terabyte did not come just now."""
    links = {"eth0": 1e12, "veth7": 5e9}

    def counters(**_: object) -> dict[str, SimpleNamespace]:
        return {n: SimpleNamespace(bytes_recv=b, bytes_sent=b / 2) for n, b in links.items()}

    monkeypatch.setattr(psutil, "net_io_counters", counters)
    probe = NetworkProbe()
    assert [s.value for s in probe.read()] == [1.005e12, 0.5025e12]
    del links["veth7"]
    links["eth0"] += 100.0
    assert [s.value for s in probe.read()] == [1.005e12 + 100, 0.5025e12 + 50]


def test_a_device_whose_place_is_unknown_has_no_count_of_faults() -> None:
    log = Xids()
    log.unread = ""
    device = Device(index=0, vendor="nvidia", name="H100")
    [absent] = FaultEvents(log).samples(device, None)
    assert (absent.value, absent.kind) == (None, "unavailable")
    told = list(FaultEvents(log).samples(device, (0, 1, 0)))
    assert [sample.value for sample in told] == [0.0] * (1 + len(GRAVE))
