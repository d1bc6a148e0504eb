"""The fake NVIDIA libraries, built with the C compiler, and programs run against them.

The genuine binding loads its library by name once in a process, so whatever uses it runs in a
process of its own whose loader looks in the folder first.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
LIBRARIES = {"fake_nvml.c": "libnvidia-ml.so.1", "fake_cuda.c": "libcuda.so.1"}
DEADLINE = 60.0


def build(folder: Path) -> Path:
    """The libraries, in `folder`, which it gives back."""
    for source, library in LIBRARIES.items():
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", folder / library]
            + [HERE / source],
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
