"""What a node's accelerators are is told with the hello, and told anew when it changes."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.agent import node as node_module
from engine.agent.inventory import take_inventory
from engine.agent.kernel_log import KernelLog
from engine.agent.node import NodeAgent
from engine.agent.probes import NodeProbes
from engine.protocol.agent import Accelerator, AgentHello, LogLines
from monitoring.probes import accelerators
from monitoring.probes.devices import Device
from monitoring.probes.roots import Roots
from tests.engine.agents import until
from tests.engine.control_peer import TOKEN, ControlPeer
from tests.monitoring.test_probes_ascend import PAIRED


class Box:
    """An agent on a machine made of files."""

    def __init__(self, peer: ControlPeer, root: Path) -> None:
        self.dev = root / "dev"
        self.dev.mkdir()
        os.mkfifo(root / "kmsg")
        probes = NodeProbes(root, Roots(sysfs=root, dev=self.dev))
        inventory = take_inventory("127.0.0.1", accelerators=probes.accelerators.discover(20))
        self.agent = NodeAgent(peer.url, TOKEN, inventory, root / "home", {}, probes)
        self.agent.kernel_log = KernelLog(probes.xids, root / "kmsg")
        self.stop = asyncio.Event()
        self.running = asyncio.create_task(self.agent.run(self.stop))


@pytest.fixture
async def peer() -> AsyncIterator[ControlPeer]:
    peer = await ControlPeer().open()
    yield peer
    await peer.close()


@pytest.fixture
async def box(
    peer: ControlPeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Box]:
    monkeypatch.setattr(node_module, "DEVICES_SECONDS", 0.05)
    monkeypatch.setattr(accelerators, "LOOK_SECONDS", 0.05)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    box = Box(peer, tmp_path)
    yield box
    box.stop.set()
    await asyncio.wait({box.running})


def test_a_device_is_told_as_it_is() -> None:
    device = Device(index=1, vendor="nvidia", name="GB10", uuid="u", unified=True, driver="580")
    (told_as,) = take_inventory("10.0.0.1", accelerators=[device]).accelerators
    assert (told_as.index, told_as.name, told_as.unified, told_as.memory_bytes) == (
        1,
        "GB10",
        True,
        None,
    )


async def test_a_driver_that_comes_later_is_told_with_a_new_hello(
    peer: ControlPeer, box: Box, tmp_path: Path
) -> None:
    await until(lambda: len(peer.all(AgentHello)) == 1, "a hello")
    assert peer.all(AgentHello)[0].inventory.accelerators == []
    (tmp_path / "recorded").write_text(PAIRED)
    tool = tmp_path / "npu-smi"
    tool.write_text(f'#!/bin/sh\ncat "{tmp_path}/recorded"\n')
    tool.chmod(0o755)
    (box.dev / "davinci0").touch()

    def known() -> list[Accelerator]:
        return [one for hello in peer.all(AgentHello) for one in hello.inventory.accelerators]

    await until(lambda: bool(known()), "another hello")
    assert [(one.index, one.vendor, one.name) for one in known()] == [
        (0, "ascend", "Ascend910"),
        (1, "ascend", "Ascend910"),
    ]


async def test_the_kernels_lines_reach_the_panel(
    peer: ControlPeer, box: Box, tmp_path: Path
) -> None:
    await until(lambda: len(peer.all(AgentHello)) == 1, "a hello")
    end = os.open(tmp_path / "kmsg", os.O_WRONLY)
    os.write(end, b"3,1,1,-;the disk is on fire\n")

    def seen() -> bool:
        return any(
            batch.lines == ["err: the disk is on fire"]
            for batch in peer.all(LogLines)
            if batch.key == "kernel"
        )

    await until(seen, "the kernel's line")
    os.close(end)
