"""What the figures were measured on."""

import os
import platform
from pathlib import Path

import msgspec
import psutil

_SETS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8", "amx_bf16")


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    processor: str
    cores: int
    """That we may use."""
    instruction_sets: list[str]
    """Of those that matter to matrices."""
    memory_bytes: int
    system: str
    load: float | None
    """Processes that wanted a core in the minute before; anything near 1 is somebody else's."""


def hardware() -> Hardware:
    lines = _cpuinfo()
    flags = set(lines.get("flags", lines.get("Features", "")).split())
    return Hardware(
        processor=lines.get("model name", platform.processor() or platform.machine()),
        cores=len(os.sched_getaffinity(0)),
        instruction_sets=[name for name in _SETS if name in flags],
        memory_bytes=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()}",
        load=round(os.getloadavg()[0], 2),
    )


def _cpuinfo() -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return found
    for line in text.splitlines():
        key, _colon, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    return found
