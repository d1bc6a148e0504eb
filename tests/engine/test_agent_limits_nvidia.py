"""The genuine NVIDIA binding against a library that remembers what it was set to."""

import json
from pathlib import Path

import pytest

from tests.peers.nvml import build, environment, run

PROGRAM = """
import json, pathlib, sys
from engine.agent.limits.devices import NvidiaDevices
from engine.agent.limits.originals import Originals
from engine.agent.limits.settings import settle
from engine.protocol.agent import Limits

def held(*limits):
    # A new agent each time: all it knows is on disk.
    for wanted in limits:
        originals = Originals(pathlib.Path({folder!r}))
        states = settle(NvidiaDevices(), wanted, originals, {{}}, ())
        yield [[s.what, s.target, s.value, str(s.reason)] for s in states]

quiet = Limits(power_watts=350.0, clock_hertz=1.2e9)
print(json.dumps(list(held(quiet, Limits()))))
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


def asked(libraries: Path, folder: Path, box: str, **settings: str) -> list[list[list[object]]]:
    told = {"state": str(folder / "state")} | settings
    printed = run(PROGRAM.format(folder=str(folder)), environment(libraries, box, **told))
    found: list[list[list[object]]] = json.loads(printed)
    return found


def test_eight_h100s_are_limited_and_set_back_to_what_they_were(
    libraries: Path, tmp_path: Path
) -> None:
    held, freed = asked(libraries, tmp_path, "h100")
    assert held[:2] == [["power", "gpu:0", 350.0, ""], ["clock", "gpu:0", 1.2e9, ""]]
    assert len(held) == 16
    assert freed == []
    lines = (tmp_path / "state").read_text().splitlines()
    assert [line for line in lines if line.split()[1] == "3"] == [
        "power 3 350000",
        "clock 3 0 1200",
        "power 3 700000",
        "clock 3",
    ]


def test_a_gb10_takes_a_clock_but_no_power_limit(libraries: Path, tmp_path: Path) -> None:
    held, freed = asked(libraries, tmp_path, "gb10")
    assert held == [
        ["power", "gpu:0", None, "This accelerator does not let it be set."],
        ["clock", "gpu:0", 1.2e9, ""],
    ]
    assert freed == []


def test_who_is_not_root_is_told_so(libraries: Path, tmp_path: Path) -> None:
    held, freed = asked(libraries, tmp_path, "h100", denied="1")
    assert held[0][2] is None
    assert "Run the agent as root" in str(held[0][3])
    assert freed == []


def test_a_driver_that_is_not_loaded_leaves_the_node_without_limits(
    libraries: Path, tmp_path: Path
) -> None:
    control = tmp_path / "control"
    control.write_text("unloaded\n")
    held, _freed = asked(libraries, tmp_path, "h100", control=str(control))
    assert held[0][:3] == ["power", "node", None]
