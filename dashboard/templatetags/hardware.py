"""What a node is made of, as its page tells it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django import template

from engine.protocol.agent import Accelerator, Inventory

register = template.Library()


@dataclass
class Alike:
    """Accelerators that differ in nothing but their number."""

    first: Accelerator
    devices: list[Accelerator] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.devices)


@register.filter
def alike(hardware: Inventory) -> Sequence[Alike]:
    """In the order of their numbers."""
    groups: dict[tuple[str, int | None, bool, str], Alike] = {}
    for device in hardware.accelerators:
        key = device.name, device.memory_bytes, device.unified, device.driver
        groups.setdefault(key, Alike(device)).devices.append(device)
    return list(groups.values())
