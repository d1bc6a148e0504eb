"""How often NVIDIA's driver reported a fault of a device, by what the kernel logged."""

import re
import threading
from collections import Counter

from monitoring.samples import gettext_noop

XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F]+):([0-9a-fA-F]+):([0-9a-fA-F]+)[^)]*\): (\d+)")
GRAVE = (48, 63, 64, 74, 79, 94, 95)
"""Of broken memory, links and devices. They are told from 0 on, so that the first one is growth;
most others are a program's own fault."""
NOT_READ = gettext_noop("The kernel's log is not read on this node.")

Place = tuple[int, int, int]
"""PCI domain, bus and device."""


def place_of(bus_id: str) -> Place | None:
    """`00000000:01:00.0`, or with a shorter domain."""
    parts = re.fullmatch(r"([0-9a-fA-F]+):([0-9a-fA-F]+):([0-9a-fA-F]+)(\.\d+)?", bus_id)
    return (int(parts[1], 16), int(parts[2], 16), int(parts[3], 16)) if parts else None


class Xids:
    """Since the agent started. One thread tells, another asks."""

    def __init__(self) -> None:
        self.unread: str = NOT_READ
        """Why the log is not read; empty when it is."""
        self._counts: dict[Place, Counter[int]] = {}
        self._lock = threading.Lock()

    def hear(self, line: str) -> bool:
        """A line of the kernel's log; whether it told of a fault."""
        found = XID.search(line)
        if not found:
            return False
        place = int(found[1], 16), int(found[2], 16), int(found[3], 16)
        with self._lock:
            self._counts.setdefault(place, Counter())[int(found[4])] += 1
        return True

    def of(self, place: Place | None) -> Counter[int]:
        """Fault number -> times."""
        with self._lock:
            return Counter(self._counts.get(place, {})) if place else Counter()
