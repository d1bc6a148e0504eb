"""What the kernel says of one process, for a price that can be paid twice a second."""

import os
from pathlib import Path
from typing import NamedTuple

_PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessLook(NamedTuple):
    state: str
    """`T` when a signal stopped it; empty when it is gone."""
    ticks: int
    """Processor time it has used."""


GONE = ProcessLook("", 0)


def look_at(pid: int) -> ProcessLook:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return GONE
    return ProcessLook(fields[0], int(fields[11]) + int(fields[12]))


def private_bytes(pid: int) -> int:
    """Memory that is its own: what maps a file can be dropped by the kernel."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * _PAGE


def available_bytes() -> int | None:
    """What the host has left without swapping; None where that is not told."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return next((int(kilobytes) * 1024 for kilobytes in found), None)
