"""Two boxes on one wire: network namespaces with an address each, joined by a virtual cable."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

from engine.protocol.launch import ProcessSpec, encode_spec

ROOT = Path(__file__).resolve().parents[2]
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


def why_not() -> str | None:
    """Why there can be no boxes here; None when there can."""
    if not sys.platform.startswith("linux"):
        return "network namespaces are Linux's"
    if shutil.which("ip") is None:
        return "the command ip is missing: install iproute2"
    if os.geteuid() != 0:
        return "network namespaces need root"
    return None


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=20)


class Box:
    """One namespace; `address` is the only one that the other box reaches."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.wire = f"{name}w"

    def start(self, module: str, spec: ProcessSpec, log: Path) -> subprocess.Popen[bytes]:
        """`python -m module` in this box, given `spec`; its standard input stays open."""
        environment = os.environ | {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
        with log.open("wb") as output:
            process = self.run(["-m", module], environment, output, stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(encode_spec(spec) + b"\n")
        process.stdin.flush()
        return process

    def run(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        output: IO[bytes],
        stdin: int = subprocess.DEVNULL,
        leash: list[str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Python with `arguments` in this box; its pid is the process's own. `leash` is a command
        that becomes the one that follows it."""
        enter = ["ip", "netns", "exec", self.name]
        return subprocess.Popen(
            [*(leash or []), *enter, sys.executable, *arguments],
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=dict(environment),
        )

    def inside(self, work: Callable[[], T]) -> T:
        """The result of `work`, done in a thread whose sockets belong to this box."""
        with ThreadPoolExecutor(1, initializer=self._enter) as thread:
            return thread.submit(work).result(timeout=120)

    def received(self) -> int:
        """Bytes that came over the wire."""
        counter = Path(f"/sys/class/net/{self.wire}/statistics/rx_bytes")
        command = ["ip", "netns", "exec", self.name, "cat", str(counter)]
        return int(subprocess.run(command, check=True, capture_output=True, timeout=20).stdout)

    def pids(self) -> list[int]:
        """Of every process whose sockets belong to this box."""
        command = ["ip", "netns", "pids", self.name]
        done = subprocess.run(command, check=True, capture_output=True, timeout=20)
        return [int(word) for word in done.stdout.split()]

    def pull_cable(self) -> None:
        """No more packets and no word of it to anybody, as when a box loses its power."""
        ip("-n", self.name, "link", "set", self.wire, "down")

    def plug_cable(self) -> None:
        ip("-n", self.name, "link", "set", self.wire, "up")

    def _enter(self) -> None:
        namespace = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
        try:
            if _libc.setns(namespace, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            os.close(namespace)


@contextmanager
def two_boxes() -> Iterator[tuple[Box, Box]]:
    """Two namespaces, gone when left."""
    tag = f"tdm{os.getpid() % 100_000}"
    one, other = Box(f"{tag}a", "10.231.77.1"), Box(f"{tag}b", "10.231.77.2")
    made: list[Box] = []
    try:
        for box in (one, other):
            ip("netns", "add", box.name)
            made.append(box)
            ip("-n", box.name, "link", "set", "lo", "up")
        ip("-n", one.name, "link", "add", one.wire, "type", "veth", "peer", other.wire,
           "netns", other.name)  # fmt: skip
        for box in (one, other):
            ip("-n", box.name, "address", "add", f"{box.address}/24", "dev", box.wire)
            ip("-n", box.name, "link", "set", box.wire, "up")
        yield one, other
    finally:
        for box in made:
            ip("netns", "del", box.name)
