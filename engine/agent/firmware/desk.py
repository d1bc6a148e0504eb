"""What the node has, read now and then, and told when it has changed."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import NoReturn, Protocol

import psutil

from engine.agent.firmware.accelerators import accelerator_parts
from engine.agent.firmware.ascend import npu_parts
from engine.agent.firmware.drives import drive_parts
from engine.agent.firmware.errors import FirmwareError
from engine.agent.firmware.fwupd import Fwupd
from engine.agent.firmware.nics import nic_parts
from engine.agent.firmware.system import system_parts
from engine.errors import gettext_noop, said
from engine.protocol.agent import Firmware
from engine.protocol.firmware import Part
from monitoring.probes.devices import Device
from monitoring.probes.roots import Roots

log = logging.getLogger(__name__)

READ_SECONDS = 600.0
FWUPD_KEY = "fwupd:"
"""Of the line that says why fwupd tells nothing."""
UNREADABLE = gettext_noop("The agent cannot read it; its log says why.")
FAULTS = (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, psutil.Error)

Devices = Callable[[], list[Device]]
Source = tuple[str, str, Callable[[], list[Part]]]


class Reader(Protocol):
    async def read(self) -> list[Part]:
        """Every source for itself; one that fails costs the others nothing."""


class NodeFirmware:
    def __init__(self, roots: Roots, devices: Devices, fwupd: Fwupd | None = None) -> None:
        self._fwupd = fwupd or Fwupd()
        self._sources: tuple[Source, ...] = (
            ("uefi", "UEFI/BIOS", lambda: system_parts(roots)),
            ("gpu", "Accelerators", lambda: accelerator_parts(roots, devices())),
            ("gpu", "NPU", npu_parts),
            ("nic", "Network adapters", lambda: nic_parts(roots)),
            ("drive", "Drives", lambda: drive_parts(roots)),
        )

    async def read(self) -> list[Part]:
        own = [
            part for source in self._sources for part in await asyncio.to_thread(_isolated, *source)
        ]
        offered = await self._from_fwupd()
        return [*offered, *without_doubles(own, offered)]

    async def _from_fwupd(self) -> list[Part]:
        try:
            return await self._fwupd.parts()
        except FirmwareError as error:
            reason = error.said
        except FAULTS as error:
            log.warning("fwupd's answer cannot be read.", exc_info=error)
            reason = said(UNREADABLE)
        return [
            Part(key=FWUPD_KEY, component="other", channel="fwupd", name="fwupd", reason=reason)
        ]


def _isolated(component: str, name: str, read: Callable[[], list[Part]]) -> list[Part]:
    try:
        return read()
    except FAULTS as error:
        log.warning("Firmware of %s cannot be read.", name, exc_info=error)
        key = f"read:failed:{name}"
        reason = said(UNREADABLE)
        return [Part(key=key, component=component, channel="read", name=name, reason=reason)]


def without_doubles(own: list[Part], offered: list[Part]) -> list[Part]:
    """What fwupd tells of the same component is worth more: it can be updated there."""
    kinds = {part.component for part in offered if part.active}
    named = [(part.component, part.active) for part in offered if part.active]
    return [
        part
        for part in own
        if not (part.key in ("read:uefi", "read:ec") and part.component in kinds)
        and not (part.component == "drive" and ("drive", part.active) in named)
    ]


class FirmwareDesk:
    """`wake` is called when there is something to tell."""

    def __init__(self, reader: Reader, wake: Callable[[], None]) -> None:
        self._reader = reader
        self._wake = wake
        self._parts: list[Part] | None = None
        self._told: list[Part] | None = None
        self._hurry = asyncio.Event()

    def connected(self) -> None:
        self._told = None

    def look_again(self) -> None:
        """Soon: something was installed."""
        self._hurry.set()

    def outgoing(self) -> Iterator[Firmware]:
        parts = self._parts
        if parts is not None and parts != self._told:
            yield Firmware(parts)
            self._told = parts

    async def run(self) -> NoReturn:
        while True:
            self._hurry.clear()
            parts = await self._reader.read()
            if parts != self._parts:
                self._parts = parts
                self._wake()
            try:
                async with asyncio.timeout(READ_SECONDS):
                    await self._hurry.wait()
            except TimeoutError:
                continue
