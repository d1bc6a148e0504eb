"""How much memory is left on this machine, and which machine this is. Linux; 0 is never a guess."""

import hashlib
import os
from pathlib import Path

PROC = Path("/proc")
CGROUP = Path("/sys/fs/cgroup")
_V1_UNLIMITED = 1 << 60
"""Version 1 says 'no limit' with a number near 2**63."""


def available_bytes(proc: Path = PROC, cgroup: Path = CGROUP) -> int | None:
    """What could be taken without swapping: the kernel's estimate, or what is left under this
    process's control group if that is less. None where the system does not say."""
    rooms = [*_machine_room(proc), *_group_rooms(proc, cgroup)]
    return max(0, min(rooms)) if rooms else None


def machine_id(proc: Path = PROC) -> str:
    """The same for processes that share their memory's limit: one boot, one control group.

    The network namespace is part of it, so that boxes played by namespaces count as boxes.
    """
    parts = [_read(proc / "sys/kernel/random/boot_id"), _read(proc / "self/cgroup")]
    try:
        parts.append(os.readlink(proc / "self/ns/net"))
    except OSError:
        parts.append("")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def _machine_room(proc: Path) -> list[int]:
    for line in _read(proc / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return [int(line.split()[1]) * 1024]
    return []


def _group_rooms(proc: Path, cgroup: Path) -> list[int]:
    """Limit less use, of this process's group and of every one above it."""
    rooms = []
    for line in _read(proc / "self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, names = cgroup, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = cgroup / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        here = root / path.lstrip("/")
        for folder in (here, *here.parents):
            if not folder.is_relative_to(root):
                break
            rooms += _room(folder, *names)
    return rooms


def _room(folder: Path, limit: str, use: str, cache: str) -> list[int]:
    most, used = _read(folder / limit), _read(folder / use)
    if not most.isdecimal() or not used.isdecimal() or int(most) > _V1_UNLIMITED:
        return []
    stat = dict(line.split(" ", 1) for line in _read(folder / "memory.stat").splitlines())
    # Files read but not in use give way before anybody is refused memory.
    return [int(most) - int(used) + int(stat.get(cache, 0))]


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
