"""Firmware of network adapters, asked of their drivers (ETHTOOL_GDRVINFO)."""

import array
import fcntl
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from engine.errors import Said, gettext_noop, said, system_words
from engine.protocol.firmware import Part
from monitoring.probes.roots import Roots, text_of

SIOCETHTOOL = 0x8946
ETHTOOL_GDRVINFO = 0x00000003
DRVINFO_BYTES = 196
TEXT_BYTES = 32
IFREQ_BYTES = 40
NAME_BYTES = 15

NOT_TOLD = gettext_noop("The adapter's driver tells no firmware version.")
FAILED = gettext_noop("The adapter's driver cannot be asked: %(reason)s.")


class DriverInfo(NamedTuple):
    driver: str
    version: str
    firmware: str


Ask = Callable[[str], DriverInfo]


def ask_driver(interface: str) -> DriverInfo:
    """Raises OSError where the driver does not answer."""
    block = array.array("B", struct.pack("I", ETHTOOL_GDRVINFO).ljust(DRVINFO_BYTES, b"\0"))
    address, _length = block.buffer_info()
    request = struct.pack("16sP", interface.encode()[:NAME_BYTES], address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        fcntl.ioctl(channel, SIOCETHTOOL, request.ljust(IFREQ_BYTES, b"\0"))
    return read_info(block.tobytes())


def read_info(answer: bytes) -> DriverInfo:
    """`struct ethtool_drvinfo`: a number, then texts of 32 bytes."""
    texts = (answer[4 + TEXT_BYTES * place :][:TEXT_BYTES] for place in range(3))
    return DriverInfo(*(text.split(b"\0")[0].decode(errors="replace").strip() for text in texts))


def nic_parts(roots: Roots, ask: Ask = ask_driver) -> list[Part]:
    """Those with a device behind them; bridges and loopback have no firmware."""
    found = sorted((roots.sysfs / "class/net").glob("*/device"))
    return [_part(path.parent, ask) for path in found]


def _part(folder: Path, ask: Ask) -> Part:
    name, reason = folder.name, Said()
    try:
        info = ask(name)
    except OSError as error:
        info, reason = DriverInfo("", "", ""), said(FAILED, reason=system_words(error))
    version = "" if info.firmware in ("N/A", "n/a") else info.firmware
    if not version and not reason:
        reason = said(NOT_TOLD)
    details = {"driver": info.driver, "driver version": info.version}
    return Part(
        key=f"read:nic:{name}",
        component="nic",
        channel="read",
        name=f"{name} ({info.driver})" if info.driver else name,
        model=_model(folder / "device"),
        active=version[:80],
        details={key: value for key, value in details.items() if value},
        reason=reason,
    )


def _model(device: Path) -> str:
    """`15b3:1021`, as PCI numbers makers and their devices."""
    maker, kind = text_of(device / "vendor") or "", text_of(device / "device") or ""
    return f"{maker.removeprefix('0x')}:{kind.removeprefix('0x')}" if maker and kind else ""
