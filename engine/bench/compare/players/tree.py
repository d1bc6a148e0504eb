"""A process and all that it started, from /proc."""

import os
from pathlib import Path

_PROC = Path("/proc")
_KIB = 1024


def processes(root: int) -> list[int]:
    """`root` and its descendants; those that end meanwhile are left out."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += _children(pid)
    return found


def peak_bytes(root: int) -> int:
    """The most that each held in memory, added up: a page that two of them share counts twice."""
    return sum(_peak(pid) for pid in processes(root))


def cpu_seconds(root: int) -> float:
    """Processor time so far of those that are there."""
    return sum(_cpu(pid) for pid in processes(root))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in (_PROC / str(pid) / "task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:
        return found
    return found


def _peak(pid: int) -> int:
    try:
        status = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return 0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return sum(int(line.split()[1]) * _KIB for line in lines)


def _cpu(pid: int) -> float:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return 0.0
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
