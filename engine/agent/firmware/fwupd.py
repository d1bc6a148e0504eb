"""fwupd, over D-Bus: devices and what is offered for them, and installing one archive."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dbus_fast import Variant

from engine.agent.firmware.bus import Bus, Refusal
from engine.agent.firmware.errors import FirmwareError, Unsettled
from engine.agent.firmware.fwupd_values import (
    Values,
    part_of,
    text,
    waits_for_reset,
    whole,
)
from engine.errors import gettext_noop
from engine.protocol.firmware import Part

SERVICE = "org.freedesktop.fwupd"
PROPERTIES = "org.freedesktop.DBus.Properties"
INSTALL_SECONDS = 3600.0
STALL_SECONDS = 600.0
"""Without any progress; erasing large chips takes minutes."""
POLL_SECONDS = 0.5
IDLE = 1
"""`Status` of a daemon that does nothing."""
MOST_DEVICES = 200

NO_DEVICE = gettext_noop("fwupd does not know this device any more.")
STALLED = gettext_noop("fwupd has made no progress for %(minutes)s minutes; do not switch it off.")
TOO_LONG = gettext_noop("fwupd has not ended within %(minutes)s minutes; do not switch it off.")

Progress = Callable[[float], None]


class Fwupd:
    """Each use has a connection of its own: the daemon comes and goes by itself."""

    def __init__(
        self,
        address: str | None = None,
        *,
        stall_seconds: float = STALL_SECONDS,
        install_seconds: float = INSTALL_SECONDS,
    ) -> None:
        self._address = address
        self._stall = stall_seconds
        self._most = install_seconds

    async def parts(self) -> list[Part]:
        """Raises FirmwareError with the reason why there are none."""
        async with Bus(self._address) as bus:
            devices = await _devices(bus)
            return [await _part(bus, device) for device in devices if text(device, "DeviceId")]

    async def device(self, device_id: str) -> Values:
        async with Bus(self._address) as bus:
            return await _find(bus, device_id)

    async def releases(self, device_id: str) -> list[Values]:
        """Everything that is offered for it, older ones too."""
        async with Bus(self._address) as bus:
            return await _asked(bus, "GetReleases", device_id)

    async def install(
        self, device_id: str, file: Path, progress: Progress, *, allow_older: bool
    ) -> None:
        """Raises Refusal where fwupd refuses, Unsettled where it cannot be told what happened."""
        async with Bus(self._address) as bus:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                await self._install(bus, device_id, file.name, descriptor, progress, allow_older)
            finally:
                os.close(descriptor)

    async def _install(
        self,
        bus: Bus,
        device_id: str,
        name: str,
        descriptor: int,
        progress: Progress,
        allow_older: bool,
    ) -> None:
        options = {
            "reason": Variant("s", "user-action"),
            "filename": Variant("s", name),
            "allow-older": Variant("b", allow_older),
        }
        call = asyncio.create_task(
            bus.call(
                SERVICE,
                SERVICE,
                "Install",
                "sha{sv}",
                [device_id, 0, options],
                seconds=self._most,
                files=[descriptor],
            )
        )
        watch = asyncio.create_task(self._watch(bus, progress))
        try:
            done, _rest = await asyncio.wait({call, watch}, return_when=asyncio.FIRST_COMPLETED)
            # What the call answers counts, even if the watch gave up at the same moment.
            await (call if call in done else watch)
        finally:
            for task in (call, watch):
                task.cancel()
            await asyncio.gather(call, watch, return_exceptions=True)

    async def settle(self) -> None:
        """Until the daemon does nothing: after a restart of the agent an update may be under way.

        Raises Unsettled when that does not come to an end, FirmwareError when nobody is there.
        """
        async with Bus(self._address) as bus:
            ends = time.monotonic() + self._stall
            while await _property(bus, "Status") > IDLE:
                if time.monotonic() > ends:
                    raise Unsettled(STALLED, minutes=round(self._stall / 60))
                await asyncio.sleep(POLL_SECONDS)

    async def _watch(self, bus: Bus, progress: Progress) -> None:
        """Tells how far it is; ends only by raising."""
        seen: tuple[int, int] | None = None
        moved = began = time.monotonic()
        while True:
            percent = await _property(bus, "Percentage")
            now = time.monotonic()
            state = (percent, await _property(bus, "Status"))
            if state != seen:
                seen, moved = state, now
                if percent:
                    progress(min(100.0, float(percent)))
            if now - moved > self._stall:
                raise Unsettled(STALLED, minutes=round(self._stall / 60))
            if now - began > self._most:
                raise Unsettled(TOO_LONG, minutes=round(self._most / 60))
            await asyncio.sleep(POLL_SECONDS)


async def _property(bus: Bus, name: str) -> int:
    try:
        answer = await bus.call(SERVICE, PROPERTIES, "Get", "ss", [SERVICE, name])
    except Unsettled:  # Busy, or about to say so on the call that matters.
        return 0
    value = _plain(answer[0]) if answer else 0
    return whole({"value": value}, "value")


async def _devices(bus: Bus) -> list[Values]:
    answer = await bus.call(SERVICE, SERVICE, "GetDevices")
    return _dictionaries(answer)[:MOST_DEVICES]


async def _find(bus: Bus, device_id: str) -> Values:
    for device in await _devices(bus):
        if text(device, "DeviceId") == device_id:
            return device
    raise FirmwareError(NO_DEVICE)


async def _part(bus: Bus, device: Values) -> Part:
    device_id = text(device, "DeviceId")
    upgrades = await _asked(bus, "GetUpgrades", device_id)
    staged = await _staged(bus, device_id) if waits_for_reset(device) else ""
    return part_of(device, upgrades, "" if staged == text(device, "Version") else staged)


async def _asked(bus: Bus, member: str, device_id: str) -> list[Values]:
    """Nothing is what a daemon says with an error."""
    try:
        return _dictionaries(await bus.call(SERVICE, SERVICE, member, "s", [device_id]))
    except Refusal:
        return []


async def _staged(bus: Bus, device_id: str) -> str:
    try:
        answer = await bus.call(SERVICE, SERVICE, "GetResults", "s", [device_id])
    except Refusal:
        return ""
    results = _dictionaries([answer])
    releases = results[0].get("Release") if results else None
    found = _dictionaries([releases]) if isinstance(releases, list) else []
    return text(found[0], "Version") if found else ""


def _dictionaries(answer: Sequence[Any]) -> list[Values]:
    listed = _plain(answer[0]) if answer else []
    if not isinstance(listed, list):
        return []
    return [entry for entry in listed if isinstance(entry, dict)]


def _plain(value: Any) -> Any:
    """Without the wrappers that tell types."""
    if isinstance(value, Variant):
        return _plain(value.value)
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value
