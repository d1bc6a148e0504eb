"""A node says what it is made of."""

from pathlib import Path

from engine import VERSION
from engine.agent.inventory import address_towards, take_inventory
from engine.native.build import library

CPUINFO = """processor\t: 0
model name\t: Example CPU 9000
flags\t\t: fpu sse2 avx2 fma avx512f avx512_vnni

processor\t: 1
model name\t: Example CPU 9000
"""


def test_the_processor_and_what_its_kernels_can_use(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(CPUINFO)
    inventory = take_inventory("127.0.0.2", cpuinfo)
    assert inventory.cpu_model == "Example CPU 9000"
    own = ["own_kernels"] if library().exists() else []
    assert inventory.instruction_sets == ["avx2", "fma", "avx512f", "avx512_vnni", *own]
    assert inventory.address == "127.0.0.2"
    assert inventory.memory_bytes > 1 << 20
    assert inventory.hostname
    assert inventory.engine_version == VERSION


def test_an_arm_processor_names_its_features_otherwise(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nFeatures\t: fp asimd asimddp i8mm\n")
    inventory = take_inventory("10.0.0.1", cpuinfo)
    assert inventory.instruction_sets == ["asimd", "asimddp", "i8mm"]
    assert inventory.cpu_model


def test_no_cpuinfo_is_no_failure(tmp_path: Path) -> None:
    assert take_inventory("10.0.0.1", tmp_path / "none").instruction_sets == []


def test_the_address_is_the_one_the_server_would_see() -> None:
    assert address_towards("http://127.0.0.1:8000") == "127.0.0.1"


def test_the_address_on_the_cable_is_told_when_there_is_one() -> None:
    assert take_inventory("10.0.0.1").link_address == ""
    cabled = take_inventory("10.0.0.1", link_address="10.231.77.1")
    assert (cabled.address, cabled.link_address) == ("10.0.0.1", "10.231.77.1")
