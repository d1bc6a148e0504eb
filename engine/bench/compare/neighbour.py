"""Somebody else on the same machine, who keeps one core busy."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_core() -> Iterator[int]:
    """The core, kept busy while the block runs: the last of those we may use."""
    core = max(os.sched_getaffinity(0))
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.sched_setaffinity(process.pid, {core})
        yield core
    finally:
        process.kill()
        process.wait()
