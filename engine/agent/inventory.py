"""What this node is made of, asked once when the agent starts."""

import os
import platform
import socket
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from engine import VERSION
from engine.abilities import OWN_KERNELS
from engine.native.build import usable
from engine.protocol.agent import Accelerator, Interface, Inventory
from monitoring.probes.devices import Device

CPUINFO = Path("/proc/cpuinfo")
KERNEL_SETS = (
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    "amx_fp8",
    "amx_fp8",
    "asimd",
    "asimddp",
    "i8mm",
    "bf16",
    "sve",
    "sve2",
)
"""Instruction sets that decide which kernels run, by their names in /proc/cpuinfo."""


def take_inventory(
    address: str,
    cpuinfo: Path = CPUINFO,
    *,
    link_address: str = "",
    accelerators: Sequence[Device] = (),
    boot_id: str = "",
) -> Inventory:
    fields = _first_cpu(cpuinfo)
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    return Inventory(
        hostname=socket.gethostname(),
        address=address,
        link_address=link_address,
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu_model=fields.get("model name") or platform.processor() or platform.machine(),
        cpu_count=_usable_cpus(),
        memory_bytes=psutil.virtual_memory().total,
        python=platform.python_version(),
        engine_version=VERSION,
        instruction_sets=[name for name in KERNEL_SETS if name in flags] + _own_kernels(flags),
        accelerators=[as_told(device) for device in accelerators],
        boot_id=boot_id,
        interfaces=_interfaces(),
    )


def as_told(device: Device) -> Accelerator:
    """A device as the panel hears of it."""
    return Accelerator(
        index=device.index,
        vendor=device.vendor,
        name=device.name,
        uuid=device.uuid,
        memory_bytes=device.memory_bytes,
        unified=device.unified,
        driver=device.driver,
    )


def address_towards(server: str) -> str:
    """This machine's own address on the road to the server; nothing is sent.

    Raises OSError when there is no road.
    """
    parts = urlsplit(server)
    kind = socket.SOCK_DGRAM
    found = socket.getaddrinfo(parts.hostname, parts.port or 80, type=kind)
    family, _, _, _, peer = found[0]
    with socket.socket(family, kind) as probe:
        probe.connect(peer)
        return str(probe.getsockname()[0])


def _interfaces() -> list[Interface]:
    """Interfaces that are up, with each of their addresses; link-local ones need a zone."""
    states = psutil.net_if_stats()
    return [
        Interface(name=name, address=one.address)
        for name, addresses in sorted(psutil.net_if_addrs().items())
        for one in addresses
        if one.family in (socket.AF_INET, socket.AF_INET6)
        and not one.address.lower().startswith("fe80:")
        and name in states
        and states[name].isup
    ]


def _own_kernels(flags: set[str]) -> list[str]:
    return [OWN_KERNELS] if usable(flags) else []


def _first_cpu(cpuinfo: Path) -> dict[str, str]:
    try:
        first, *_ = cpuinfo.read_text().split("\n\n")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _usable_cpus() -> int:
    """Cores this process may run on, which a container or taskset can make fewer."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
