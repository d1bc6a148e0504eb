"""Firmware as a node reads it: every source for itself, and why something is not known."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from engine.agent.firmware.ascend import NpuSmi, npu_parts
from engine.agent.firmware.desk import FirmwareDesk, NodeFirmware, without_doubles
from engine.agent.firmware.errors import FirmwareError
from engine.agent.firmware.fwupd import Fwupd
from engine.agent.firmware.nics import DriverInfo, nic_parts, read_info
from engine.agent.firmware.system import boot_id
from engine.protocol.component_words import component_of
from engine.protocol.firmware import Part
from monitoring.probes.devices import Device
from monitoring.probes.roots import Roots
from tests.peers.fwupd import EC, NEW_SHA256, fake_fwupd, private_bus

SECONDS = 10.0
TREE = {
    "sys/class/dmi/id/bios_vendor": "Box Maker",
    "sys/class/dmi/id/bios_version": "5.36_1.2.3",
    "sys/class/dmi/id/product_name": "Desk Box 2",
    "sys/class/dmi/id/ec_firmware_release": "1.7",
    "sys/class/net/eth0/device/vendor": "0x15b3",
    "sys/class/net/eth0/device/device": "0x1021",
    "sys/class/net/lo/mtu": "65536",
    "sys/class/nvme/nvme0/firmware_rev": "7B2QGXA7",
    "sys/class/nvme/nvme0/model": "Fast SSD",
    "sys/block/sda/device/rev": "0001",
    "sys/block/sdb/device/model": "Old Disk",
    "proc/sys/kernel/random/boot_id": "0e1f-22\n",
}


def plant(folder: Path, tree: Mapping[str, str]) -> Roots:
    for name, content in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return Roots(folder / "sys", folder / "dev", folder / "proc")


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with private_bus(tmp_path_factory.mktemp("bus")) as address:
        yield address


async def read(roots: Roots, bus: str, devices: list[Device] | None = None) -> dict[str, Part]:
    parts = await NodeFirmware(roots, lambda: devices or [], Fwupd(bus)).read()
    assert len({part.key for part in parts}) == len(parts)
    return {part.key: part for part in parts}


async def test_every_source_is_read(tmp_path: Path, bus: str) -> None:
    parts = await read(plant(tmp_path, TREE), bus)
    assert parts["read:uefi"].active == "5.36_1.2.3"
    assert parts["read:uefi"].model == "Desk Box 2"
    assert parts["read:ec"].active == "1.7"
    assert parts["read:kernel"].active == os.uname().release
    assert parts["read:drive:nvme0"].active == "7B2QGXA7"
    assert parts["read:drive:sda"].active == "0001"
    assert parts["read:nic:eth0"].model == "15b3:1021"
    assert "read:nic:lo" not in parts


async def test_what_is_not_known_has_a_reason(tmp_path: Path, bus: str) -> None:
    parts = await read(plant(tmp_path, TREE), bus)
    unknown = [part for part in parts.values() if not part.active]
    assert {part.key for part in unknown} == {"fwupd:", "read:nic:eth0", "read:drive:sdb"}
    assert all(str(part.reason).endswith(".") for part in unknown)
    bare = await read(Roots(tmp_path / "none", tmp_path, tmp_path), bus)
    assert "DMI" in str(bare["read:uefi"].reason)


async def test_without_a_bus_the_rest_is_told(tmp_path: Path) -> None:
    parts = await read(plant(tmp_path, TREE), f"unix:path={tmp_path}/none")
    assert "D-Bus" in str(parts["fwupd:"].reason)
    assert parts["read:uefi"].active


@pytest.mark.parametrize("said", [b"", b"REJECTED EXTERNAL\r\n", b"\xff" * 400])
async def test_a_bus_that_speaks_nonsense_costs_the_rest_nothing(
    tmp_path: Path, said: bytes
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(said)
        writer.close()

    server = await asyncio.start_unix_server(answer, tmp_path / "odd")
    async with server:
        parts = await read(plant(tmp_path, TREE), f"unix:path={tmp_path}/odd")
    assert "D-Bus" in str(parts["fwupd:"].reason)
    assert parts["read:uefi"].active


async def test_fwupd_tells_devices_flags_and_what_is_offered(tmp_path: Path, bus: str) -> None:
    async with fake_fwupd(bus) as fwupd:
        parts = await read(plant(tmp_path, TREE), bus)
        part = parts[f"fwupd:{EC}"]
        assert (part.component, part.active, part.available) == ("ec", "1.0.1", "1.0.4")
        assert part.updatable
        assert part.model == "11111111-2222-3333-4444-555555555555"
        assert part.details["flags"] == "require-ac"
        assert part.details["offer sha256"] == NEW_SHA256
        assert part.details["offer urgency"] == "high"
        assert part.details["offer address"] == "https://lvfs.example/ec.cab"
        assert "read:ec" not in parts
        fwupd.staged = "1.0.4"
        staged = (await read(plant(tmp_path, TREE), bus))[f"fwupd:{EC}"]
        assert (staged.staged, staged.details["flags"]) == ("1.0.4", "require-ac, needs-reboot")


def test_a_drive_that_fwupd_has_too_is_told_once() -> None:
    own = Part(key="read:drive:nvme0", component="drive", channel="read", name="x", active="7.1")
    theirs = Part(key="fwupd:b", component="drive", channel="fwupd", name="x", active="7.1")
    assert without_doubles([own], [theirs]) == []


def test_a_broken_source_costs_the_others_nothing(tmp_path: Path, bus: str) -> None:
    async def both() -> dict[str, Part]:
        firmware = NodeFirmware(plant(tmp_path, TREE), broken, Fwupd(bus))
        return {part.key: part for part in await firmware.read()}

    def broken() -> list[Device]:
        raise ValueError("a driver's odd answer")

    parts = asyncio.run(both())
    assert str(parts["read:failed:Accelerators"].reason).startswith("The agent cannot read it")
    assert parts["read:drive:sda"].active == "0001"


async def test_drivers_and_amd_firmware_are_told(tmp_path: Path, bus: str) -> None:
    tree = {"sys/class/drm/card0/device/vbios_version": "113-M3000100-102"}
    amd = Device(index=0, vendor="amd", name="MI300X", uuid="u", driver="6.10.5")
    npu = Device(index=1, vendor="ascend", name="910B")
    parts = await read(plant(tmp_path, tree), bus, [amd, npu])
    assert parts["read:gpu:u"].active == "113-M3000100-102"
    assert parts["read:driver:amd"].active == "6.10.5"
    assert "version" in str(parts["read:driver:ascend"].reason)


def test_nvidia_without_its_library_has_a_reason(tmp_path: Path, bus: str) -> None:
    gpu = Device(index=0, vendor="nvidia", name="GB10", uuid="GPU-1", driver="580.142")
    parts = asyncio.run(read(plant(tmp_path, {}), bus, [gpu]))
    assert parts["read:driver:nvidia"].active == "580.142"
    assert str(parts["read:gpu:GPU-1"].reason)


def test_a_drivers_answer_is_read_from_its_bytes(tmp_path: Path) -> None:
    block = b"\3\0\0\0" + b"mlx5_core".ljust(32, b"\0") + b"6.8".ljust(32, b"\0")
    info = read_info((block + b"28.39.1002 (MT_1)".ljust(32, b"\0")).ljust(196, b"\0"))
    assert info == DriverInfo("mlx5_core", "6.8", "28.39.1002 (MT_1)")
    (part,) = nic_parts(plant(tmp_path, TREE), lambda _name: info)
    assert (part.name, part.active) == ("eth0 (mlx5_core)", "28.39.1002 (MT_1)")


def test_the_boot_is_known(tmp_path: Path) -> None:
    assert boot_id(plant(tmp_path, TREE)) == "0e1f-22"
    assert boot_id(Roots(proc=tmp_path / "none")) == ""


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("HGX_FW_BMC_0", "bmc"),
        ("HGX_FW_ERoT_BMC_0", "bmc"),
        ("HGX_FW_GPU_SXM_3", "gpu"),
        ("BIOS", "uefi"),
        ("System Firmware", "uefi"),
        ("Embedded Controller", "ec"),
        ("ConnectX-7", "nic"),
        ("USB-C PD Controller", "pd"),
        ("Samsung SSD 990", "drive"),
        ("Fan board", "other"),
    ],
)
def test_a_name_tells_the_kind_of_component(name: str, component: str) -> None:
    assert component_of(name) == component


class Counted:
    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.reads = 0

    async def read(self) -> list[Part]:
        self.reads += 1
        return self.parts


async def test_it_is_told_after_connecting_and_when_it_changes() -> None:
    reader, woken = Counted(), asyncio.Event()
    desk = FirmwareDesk(reader, woken.set)
    running = asyncio.create_task(desk.run())
    async with asyncio.timeout(SECONDS):
        await woken.wait()
        assert len(list(desk.outgoing())) == 1
        assert list(desk.outgoing()) == []
        desk.connected()
        assert len(list(desk.outgoing())) == 1
        woken.clear()
        part = Part(key="read:x", component="other", channel="read", name="x", active="2")
        reader.parts = [part]
        desk.look_again()
        await woken.wait()
    assert [message.parts for message in desk.outgoing()] == [[part]]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


NPU_SMI = """#!/bin/sh
state={folder}/version
case "$*" in
  info) cat {folder}/info ;;
  "upgrade -b mcu -i 0") echo "        Version                        : $(cat $state)" ;;
  "upgrade -b bootloader -i 0") echo "This device does not support it."; exit 1 ;;
  "upgrade -t mcu -i 0 -f "*)
    grep -q good "$7" || {{ echo "Status : Fail"; echo "Message : wrong file"; exit 0; }}
    echo "Start upgrade [100]."; echo "   Message : need active mcu" ;;
  "upgrade -a mcu -i 0") echo 25.50.10 > $state; echo "   Status : OK" ;;
  *) echo "unexpected: $*"; exit 9 ;;
esac
"""
INFO = """
| npu-smi 25.0.rc1       Version: 25.0.rc1                                         |
| NPU   Name       | Health        | Power(W)    Temp(C)                            |
| Chip             | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)     |
| 0     910B3      | OK            | 92.2        46          0    / 0               |
| 0                | 0000:C1:00.0  | 0           0    / 0    3356 / 65536            |
"""


@pytest.fixture
def npu_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "npu"
    folder.mkdir()
    (folder / "info").write_text(INFO)
    (folder / "version").write_text("23.3.13")
    tool = folder / "npu-smi"
    tool.write_text(NPU_SMI.format(folder=folder))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_an_npus_firmware_is_asked_of_its_tool(npu_smi: Path) -> None:
    parts = {part.key: part for part in npu_parts()}
    assert (parts["npu:0:mcu"].active, parts["npu:0:mcu"].updatable) == ("23.3.13", True)
    assert parts["npu:0:mcu"].model == "910B3"
    assert parts["npu:0:bootloader"].reason


async def test_an_npus_firmware_is_written_and_activated(npu_smi: Path) -> None:
    file = npu_smi / "7.hpm"
    file.write_text("good")
    told: list[float] = []
    assert await NpuSmi(npu_smi).install("npu:0:mcu", file, told.append) == "25.50.10"


@pytest.mark.parametrize(
    ("key", "words"), [("npu:0:mcu", "wrong file"), ("npu:0:mcu;reboot", "no component")]
)
async def test_an_npus_refusal_is_told(npu_smi: Path, key: str, words: str) -> None:
    file = npu_smi / "7.hpm"
    file.write_text("bad")
    with pytest.raises(FirmwareError, match=words):
        await NpuSmi(npu_smi).install(key, file, lambda _percent: None)
