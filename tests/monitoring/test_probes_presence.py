"""Which makers' devices are probed, by what their drivers leave in /dev; with none, it is said."""

from pathlib import Path

import pytest

from monitoring.probes.accelerators import Accelerators
from monitoring.probes.base import ProbeRunner
from monitoring.probes.devices import Numbering, vendors_present
from monitoring.probes.roots import Roots
from monitoring.samples import Sample


def read(accelerators: Accelerators) -> list[Sample]:
    runner = ProbeRunner(accelerators.probes, deadline=20)
    try:
        return runner.read()
    finally:
        runner.close()


@pytest.mark.parametrize(
    ("node", "vendors"),
    [
        ("nvidia0", {"nvidia"}),
        ("nvidiactl", set()),
        ("kfd", {"amd"}),
        ("davinci7", {"ascend"}),
        ("davinci_manager", set()),
        ("dxg", {"nvidia"}),
    ],
)
def test_a_device_node_says_whose_it_is(tmp_path: Path, node: str, vendors: set[str]) -> None:
    (tmp_path / node).touch()
    assert vendors_present(tmp_path) == vendors


def test_no_device_is_one_honest_absence(tmp_path: Path) -> None:
    accelerators = Accelerators(Roots(sysfs=tmp_path, dev=tmp_path))
    assert accelerators.discover(20) == []
    (absent,) = read(accelerators)
    assert (absent.subject, absent.metric, absent.value) == ("node", "gpu_utilization_ratio", None)
    assert absent.reason == "No supported accelerator was found."


def test_a_device_without_its_makers_library_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "kfd").touch()
    (absent,) = read(Accelerators(Roots(sysfs=tmp_path, dev=tmp_path)))
    assert absent.reason.startswith("AMD's library amdsmi is not installed")


def test_a_laptops_graphics_are_no_accelerator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dev/dri").mkdir(parents=True)
    (tmp_path / "dev/dri/renderD128").touch()
    device = tmp_path / "sys/class/drm/renderD128/device"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x8086\n")
    roots = Roots(sysfs=tmp_path / "sys", dev=tmp_path / "dev")
    monkeypatch.setenv("PATH", str(tmp_path))
    (absent,) = read(Accelerators(roots))
    assert absent.reason == "No supported accelerator was found."
    tool = tmp_path / "xpu-smi"
    tool.write_text("#!/bin/sh\nexit 1\n")
    tool.chmod(0o755)
    (absent,) = read(Accelerators(roots))
    assert absent.reason == "The accelerator's tool failed; the agent's log says how."


def test_a_number_belongs_to_one_device_for_good() -> None:
    numbering = Numbering()
    assert numbering.number("nvidia", "a", 1) == 1
    assert numbering.number("nvidia", "b", 0) == 0
    assert numbering.number("amd", "a") == 2
    assert numbering.number("nvidia", "c", 1) == 3
    assert numbering.number("nvidia", "a", 5) == 1
