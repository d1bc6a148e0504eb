"""An office in network namespaces: two boxes, the cable between them, and the network that joins
both to the panel.

    box a  10.231.77.1 ===== cable ===== 10.231.77.2  box b
      |   .11                                .12   |
      +---------- 10.231.(100 + slot).1 -----------+   the panel, in the root namespace

The cable is a switch of its own, so pulling it takes the carrier from both ends at once and tells
no socket anything. Several offices stand side by side, a *slot* each. The slot's lock dies with its
process, so whoever takes the slot next knows that what still stands there is left over.
"""

import contextlib
import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tests.chaos.processes import end, of_state
from tests.engine.boxes import Box, ip

SLOTS = 8
STATE_MEGABYTES = 640


class Office:
    """Names and addresses of one slot; `built` makes it stand."""

    def __init__(self, slot: int) -> None:
        tag = f"tdmc{slot}"
        self.address = f"10.231.{100 + slot}.1"
        self.port = 18400 + slot
        self.boxes = (Box(f"{tag}a", "10.231.77.1"), Box(f"{tag}b", "10.231.77.2"))
        self.managed = (f"10.231.{100 + slot}.11", f"10.231.{100 + slot}.12")
        """Where the panel reaches the boxes."""
        self.state = Path(tempfile.gettempdir()) / f"tandem-chaos-{slot}"
        """The panel's state directory: a file system of its own, so that it can be full."""
        self.files = self.state.with_name(f"{self.state.name}-files")
        """Logs, and what the agents keep: on a file system that never is full."""
        self._lan, self._cable = f"{tag}lan", f"{tag}cbl"

    def build(self) -> None:
        """Raises CalledProcessError where the kernel refuses."""
        for bridge in (self._lan, self._cable):
            ip("link", "add", bridge, "type", "bridge", "forward_delay", "0")
            ip("link", "set", bridge, "up")
        ip("address", "add", f"{self.address}/24", "dev", self._lan)
        for box, managed in zip(self.boxes, self.managed, strict=True):
            ip("netns", "add", box.name)
            ip("-n", box.name, "link", "set", "lo", "up")
            self._plug(box, self._cable, box.wire, box.address)
            self._plug(box, self._lan, f"{box.name}m", managed)
        self.files.mkdir(mode=0o700)
        self.state.mkdir(mode=0o755, exist_ok=True)
        size = f"size={STATE_MEGABYTES}m,mode=0755"
        _run("mount", "-t", "tmpfs", "-o", size, "tandem-chaos", str(self.state))

    def clear(self) -> None:
        """Take down what stands, as far as it stands, with the processes that live there."""
        for box in self.boxes:
            if Path(f"/run/netns/{box.name}").exists():
                end(box.pids())
        end(of_state(self.state))
        for box in self.boxes:
            if Path(f"/run/netns/{box.name}").exists():
                ip("netns", "del", box.name)
        for bridge in (self._lan, self._cable):
            if Path(f"/sys/class/net/{bridge}").exists():
                ip("link", "del", bridge)
        while self.state.is_mount():
            _run("umount", "--lazy", str(self.state))
        if self.state.exists():
            self.state.rmdir()
        shutil.rmtree(self.files, ignore_errors=True)

    def pull_cable(self) -> None:
        for box in self.boxes:
            ip("link", "set", f"{box.wire}p", "down")

    def plug_cable(self) -> None:
        for box in self.boxes:
            ip("link", "set", f"{box.wire}p", "up")

    def _plug(self, box: Box, bridge: str, wire: str, address: str) -> None:
        """`wire` inside the box; its other end is called the same with a p, in the bridge."""
        port = f"{wire}p"
        ip("link", "add", port, "type", "veth", "peer", wire, "netns", box.name)
        ip("link", "set", port, "master", bridge, "up")
        ip("-n", box.name, "address", "add", f"{address}/24", "dev", wire)
        ip("-n", box.name, "link", "set", wire, "up")


@contextlib.contextmanager
def office() -> Iterator[Office]:
    """A built one, gone when left."""
    slot, lock = _take_slot()
    with lock:
        it = Office(slot)
        it.clear()
        try:
            it.build()
            yield it
        finally:
            it.clear()


def _take_slot() -> tuple[int, IO[bytes]]:
    for slot in range(SLOTS):
        lock = (Path(tempfile.gettempdir()) / f"tandem-chaos-{slot}.lock").open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
        else:
            return slot, lock
    raise RuntimeError(f"All {SLOTS} offices are in use.")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=20)
