"""The kernel's warnings reach the panel once, in bounds; faults of NVIDIA's driver are counted."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.agent.kernel_log import KernelLog, parse
from monitoring.probes.xids import Xids, place_of
from tests.engine.agents import until

XID = "4,812,99,-;NVRM: Xid (PCI:0000:01:00): 79, pid=1234, name=python3, GPU has fallen off.\n"
PLACE = (0, 1, 0)


class Pipe:
    """Stands in for /dev/kmsg."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.xids = Xids()
        self.log = KernelLog(self.xids, path)
        self.log.open()
        self._end = os.open(path, os.O_WRONLY)
        self.lines: list[str] = []

    def write(self, text: str) -> None:
        os.write(self._end, text.encode())

    async def hear(self, count: int) -> list[str]:
        def take() -> bool:
            for batch in self.log.take():
                assert (batch.key, batch.launch) == ("kernel", "")
                self.lines += batch.lines
            return len(self.lines) >= count

        await until(take, f"{count} lines")
        lines, self.lines = self.lines, []
        return lines

    def close(self) -> None:
        self.log.close()
        os.close(self._end)


@pytest.fixture
async def pipe(tmp_path: Path) -> AsyncIterator[Pipe]:
    opened = Pipe(tmp_path / "kmsg")
    yield opened
    opened.close()


async def test_warnings_are_told_and_chatter_is_not(pipe: Pipe) -> None:
    pipe.write("6,1,10,-;usb 1-1: new device\n SUBSYSTEM=usb\n DEVICE=c189:1\n")
    pipe.write("3,2,11,-;mce: [Hardware Error]: Machine check\n12,3,12,-;from a program\n")
    assert await pipe.hear(2) == [
        "err: mce: [Hardware Error]: Machine check",
        "warning: from a program",
    ]


async def test_a_record_may_come_in_two_pieces(pipe: Pipe) -> None:
    pipe.write("4,5,10,-;the first ")
    pipe.write("half and the second\n")
    assert await pipe.hear(1) == ["warning: the first half and the second"]


async def test_a_fault_is_told_and_counted_by_its_device(pipe: Pipe) -> None:
    pipe.write(XID + XID.replace("79", "48").replace("4,", "6,"))
    lines = await pipe.hear(2)
    assert lines[0].startswith("warning: NVRM: Xid (PCI:0000:01:00): 79")
    assert lines[1].startswith("info: NVRM"), "whatever its level"
    assert pipe.xids.of(PLACE) == {79: 1, 48: 1}
    assert pipe.xids.of((0, 2, 0)) == {}
    assert pipe.xids.unread == ""


async def test_a_flood_is_bounded_and_counted(pipe: Pipe) -> None:
    for number in range(300):
        pipe.write(f"4,{number},10,-;line {number}\n")
        await asyncio.sleep(0)
    pipe.write("4,300,10,-;the end\n")
    told: list[str] = []
    while not told or told[-1] != "warning: the end":
        told += await pipe.hear(1)
    left_out = [int(line.split()[0][1:]) for line in told if line.endswith("lines left out)")]
    assert len(told) - len(left_out) + sum(left_out) == 301


async def test_a_log_that_ends_counts_no_faults_any_more(tmp_path: Path) -> None:
    pipe = Pipe(tmp_path / "ending")
    os.close(pipe._end)
    await until(lambda: bool(pipe.xids.unread), "the end")
    assert pipe.xids.unread == "This node's kernel shows no log."


async def test_without_a_log_it_is_said_and_the_agent_lives(tmp_path: Path) -> None:
    xids = Xids()
    log = KernelLog(xids, tmp_path / "none")
    log.open()
    assert xids.unread == "This node's kernel shows no log."
    assert log.take() == []
    (tmp_path / "file").write_text("4,1,1,-;old\n")
    KernelLog(xids, tmp_path / "file").open()
    assert xids.unread == "This node's kernel shows no log."


@pytest.mark.parametrize("line", ["", " SUBSYSTEM=usb", "no record", ";", "x,1,2;text"])
def test_what_is_no_record_is_skipped(line: str) -> None:
    assert parse(line) is None


def test_both_ways_of_writing_a_place_are_one() -> None:
    assert place_of("00000000:01:00.0") == place_of("0000:01:00.0") == PLACE
    assert place_of("nonsense") is None
