"""The fake NVIDIA libraries, built with the C compiler, and programs run against them.

The genuine binding loads its library by name once in a process, so whatever uses it runs in a
process of its own whose loader looks in the folder first.
"""

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from monitoring.probes.devices import Device
from monitoring.samples import Sample

HERE = Path(__file__).parent
LIBRARIES = {"fake_nvml.c": "libnvidia-ml.so.1", "fake_cuda.c": "libcuda.so.1"}
DEADLINE = 60.0


def build(folder: Path) -> Path:
    """The libraries, in `folder`, which it gives back."""
    for source, library in LIBRARIES.items():
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-Wall", "-Werror", HERE / source, "-o", folder / library],
            check=True,
            timeout=DEADLINE,
        )
    return folder


def environment(libraries: Path, box: str, **settings: str) -> dict[str, str]:
    """Of a process that finds `box`; settings as at the top of `fake_nvml.c`, in lower case and
    without their prefix: `state`, `control`, `denied`."""
    told = {f"FAKE_NVML_{name.upper()}": value for name, value in settings.items()}
    return {**os.environ, "LD_LIBRARY_PATH": str(libraries), "FAKE_NVML": box, **told}


def run(program: str, env: Mapping[str, str]) -> str:
    """What a Python program prints in such an environment; fails with what it complained of."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


class Machine:
    """A process that reads the devices of a box; what befalls the box goes into `control`."""

    def __init__(self, libraries: Path, box: str, folder: Path, *befallen: str) -> None:
        """`befallen`: what is so before it starts."""
        self.control = folder / "control"
        self.state = folder / "state"
        self.befalls(*befallen)
        (folder / "nvidia0").touch()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.peers.device_reader", str(folder)],
            env=environment(libraries, box, control=str(self.control), state=str(self.state)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.tell("devices")  # It has looked around.

    def tell(self, line: str) -> object:
        """What it answers; fails when it ends instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], DEADLINE)
        answer = self._process.stdout.readline() if ready else ""
        if not answer:
            raise AssertionError(f"No answer to {line!r} within {DEADLINE:g} s.")
        return json.loads(answer)

    def read(self) -> dict[str, Sample]:
        """By subject, metric and label: `gpu:0 gpu_clock_hertz sm`."""
        samples = msgspec.convert(self.tell("read"), list[Sample])
        return {f"{s.subject} {s.metric} {s.label}".strip(): s for s in samples}

    def devices(self) -> list[Device]:
        return msgspec.convert(self.tell("devices"), list[Device])

    def befalls(self, *lines: str) -> None:
        self.control.write_text("".join(f"{line}\n" for line in lines))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=DEADLINE)
        assert self._process.stdout is not None
        self._process.stdout.close()
