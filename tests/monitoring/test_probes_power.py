"""Watts from energy counters, over their wrap, and honest when they cannot be read."""

from pathlib import Path

import pytest

from monitoring.probes.power import RaplProbe
from monitoring.samples import Sample


class Counters:
    """A power-capping tree with two packages, a part of one, and the platform's own zone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = 0.0
        self.probe = RaplProbe(root, clock=lambda: self.now)

    def set(self, zone: str, microjoules: int, name: str = "package-0") -> None:
        folder = self.root / zone
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "energy_uj").write_text(f"{microjoules}\n")
        (folder / "max_energy_range_uj").write_text("1000000000\n")

    def read(self) -> Sample:
        """The power; the energy is beside it."""
        power, self.energy = self.probe.read()
        return power


@pytest.fixture
def counters(tmp_path: Path) -> Counters:
    return Counters(tmp_path / "powercap")


def test_packages_are_added_and_their_parts_are_not(counters: Counters) -> None:
    counters.set("intel-rapl:0", 0)
    counters.set("intel-rapl:1", 0, "package-1")
    counters.set("intel-rapl:0:0", 0, "core")
    counters.set("intel-rapl:2", 0, "psys")
    assert counters.read().reason == "Power needs a second reading of the energy counters."
    counters.now = 2.0
    counters.set("intel-rapl:0", 60_000_000)
    counters.set("intel-rapl:1", 40_000_000, "package-1")
    counters.set("intel-rapl:0:0", 50_000_000, "core")
    counters.set("intel-rapl:2", 900_000_000, "psys")
    sample = counters.read()
    assert (sample.value, sample.unit, sample.kind, sample.scope) == (
        50.0,
        "watts",
        "measured",
        "cpu",
    )


def test_a_counter_that_wraps_is_followed(counters: Counters) -> None:
    counters.set("intel-rapl:0", 990_000_000)
    counters.read()
    counters.now = 1.0
    counters.set("intel-rapl:0", 20_000_000)
    assert counters.read().value == 30.0
    assert (counters.energy.value, counters.energy.kind) == (30.0, "measured")


def test_energy_only_grows_and_each_package_wraps_by_itself(counters: Counters) -> None:
    """Hand-computed: 10 J of a wrapping package and 40 J of another, then 5 J and 5 J."""
    counters.set("intel-rapl:0", 995_000_000)
    counters.set("intel-rapl:1", 100_000_000, "package-1")
    counters.read()
    assert counters.energy.value == 0.0
    counters.now = 1.0
    counters.set("intel-rapl:0", 5_000_000)
    counters.set("intel-rapl:1", 140_000_000, "package-1")
    assert counters.read().value == 50.0
    assert counters.energy.value == 50.0
    counters.now = 2.0
    counters.set("intel-rapl:0", 10_000_000)
    counters.set("intel-rapl:1", 145_000_000, "package-1")
    counters.read()
    assert (counters.energy.value, counters.energy.scope) == (60.0, "cpu")


def test_a_gap_in_which_a_counter_may_have_wrapped_twice_is_not_counted(
    counters: Counters,
) -> None:
    counters.set("intel-rapl:0", 0)
    counters.read()
    counters.now = 600.0
    counters.set("intel-rapl:0", 900_000_000)
    assert counters.read().reason == "Power needs a second reading of the energy counters."
    assert counters.energy.value == 0.0
    counters.now = 601.0
    counters.set("intel-rapl:0", 930_000_000)
    assert counters.read().value == 30.0


def test_no_counters_is_said(counters: Counters) -> None:
    sample = counters.read()
    assert (sample.value, sample.kind) == (None, "unavailable")
    assert sample.reason == "This machine's kernel offers no RAPL energy counters."


def test_counters_for_root_only_are_said(
    counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters.set("intel-rapl:0", 1)
    real = Path.read_text

    def guarded(path: Path, *arguments: str) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments)

    monkeypatch.setattr(Path, "read_text", guarded)
    assert "only be read by root" in counters.read().reason
