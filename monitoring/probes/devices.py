"""Accelerators: what each is, which number it has, and which vendors' devices are here."""

import itertools
import re
import threading
from pathlib import Path
from typing import Literal

import msgspec

from monitoring.probes.roots import text_of

Vendor = Literal["nvidia", "amd", "ascend", "intel"]
INTEL_PCI_VENDOR = "0x8086"
_NODES: dict[Vendor, str] = {
    "nvidia": r"nvidia\d+",
    "amd": r"kfd",
    "ascend": r"davinci\d+",
}


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """What stays while its driver is loaded. Its readings have the subject `gpu:<index>`."""

    index: int
    vendor: Vendor
    name: str
    uuid: str = ""
    memory_bytes: int | None = None
    unified: bool = False
    """Its memory is the host's."""
    driver: str = ""

    @property
    def subject(self) -> str:
        return f"gpu:{self.index}"


class Unreadable(Exception):
    """A vendor's devices are here and cannot be read at all; `reason` is a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Numbering:
    """One number for each accelerator of this machine, whoever made it; one that comes back has its
    old number, and one that is missing at the start leaves its number free."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Vendor, str], int] = {}
        self._lock = threading.Lock()

    def number(self, vendor: Vendor, key: str, wanted: int = 0) -> int:
        """The wanted one if it is free, else the next that is."""
        with self._lock:
            number, taken = self._numbers.get((vendor, key)), set(self._numbers.values())
            if number is None:
                number = next(n for n in itertools.count(wanted) if n not in taken)
                self._numbers[vendor, key] = number
            return number


def vendors_present(dev: Path) -> set[Vendor]:
    """By the device nodes that their drivers make."""
    try:
        names = [entry.name for entry in dev.iterdir()]
    except OSError:
        return set()
    found = {
        vendor
        for vendor, pattern in _NODES.items()
        if any(re.fullmatch(pattern, name) for name in names)
    }
    # WSL has one node for whatever device there is; the library then says what it is.
    if "dxg" in names:
        found.add("nvidia")
    return found


def has_intel_graphics(sysfs: Path, dev: Path) -> bool:
    """Most laptops' processors too: whether it is an accelerator, Intel's own tool decides."""
    return any(
        text_of(sysfs / "class/drm" / node.name / "device/vendor") == INTEL_PCI_VENDOR
        for node in (dev / "dri").glob("renderD*")
    )
