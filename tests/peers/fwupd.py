"""A made-up fwupd and logind on a D-Bus of their own, started by the test."""

import asyncio
import hashlib
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

from dbus_fast import BusType, DBusError, PropertyAccess, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_property, method

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>custom</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""
START_SECONDS = 10.0
EC, SSD = "a" * 40, "b" * 40
NEW = b"the new firmware of the embedded controller"
NEW_SHA256 = hashlib.sha256(NEW).hexdigest()
NEEDS_REBOOT = 1 << 8

Mode = Literal["success", "staged", "refuse", "stall", "gone", "same"]


@contextmanager
def private_bus(folder: Path) -> Iterator[str]:
    """The address of a `dbus-daemon` that nobody else uses."""
    config, socket = folder / "bus.conf", folder / "bus"
    config.write_text(CONFIG.format(socket=socket))
    daemon = subprocess.Popen(
        ["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address=1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert daemon.stdout is not None
        yield daemon.stdout.readline().strip()
    finally:
        daemon.terminate()
        daemon.wait(START_SECONDS)
        if daemon.stdout is not None:
            daemon.stdout.close()


class FakeFwupd(ServiceInterface):
    """`mode` decides how the next installation goes."""

    def __init__(self) -> None:
        super().__init__("org.freedesktop.fwupd")
        self.mode: Mode = "success"
        self.installed: list[tuple[str, bytes, dict[str, Any]]] = []
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        """A stalled installation ends when it is set."""
        self.leave: asyncio.Event = asyncio.Event()
        """Set when the daemon is to vanish."""
        self.version = "1.0.1"
        self.staged = ""
        self.percent = 0
        self.status = 1

    def _device(self) -> dict[str, Variant]:
        flags = (1 << 0) | (1 << 1) | (1 << 3) | (NEEDS_REBOOT if self.staged else 0)
        return {
            "DeviceId": Variant("s", EC),
            "Name": Variant("s", "Embedded Controller"),
            "Vendor": Variant("s", "Box Maker"),
            "Version": Variant("s", self.version),
            "VersionLowest": Variant("s", "1.0.0"),
            "Guid": Variant("as", ["11111111-2222-3333-4444-555555555555"]),
            "Flags": Variant("t", flags),
            "UpdateState": Variant("u", 4 if self.staged else 0),
        }

    @method()
    def GetDevices(self) -> "aa{sv}":  # type: ignore[valid-type]  # noqa: F722
        drive = {
            "DeviceId": Variant("s", SSD),
            "Name": Variant("s", "Fast SSD"),
            "Plugin": Variant("s", "nvme"),
            "Version": Variant("s", "7.1"),
            "Flags": Variant("t", 1),
        }
        return [self._device(), drive]

    def _release(self) -> dict[str, Variant]:
        return {
            "Version": Variant("s", "1.0.4"),
            "Checksum": Variant("s", f"{'0' * 40},{NEW_SHA256}"),
            "Urgency": Variant("u", 3),
            "Description": Variant("s", "<p>Fixes the fan.</p>"),
            "Locations": Variant("as", ["https://lvfs.example/ec.cab"]),
            "Filename": Variant("s", "ec.cab"),
        }

    @method()
    def GetUpgrades(self, device: "s") -> "aa{sv}":  # type: ignore # noqa: F821, F722
        if device != EC or self.version == "1.0.4":
            raise DBusError("org.freedesktop.fwupd.NothingToDo", "No upgrades for device")
        return [self._release()]

    @method()
    def GetReleases(self, device: "s") -> "aa{sv}":  # type: ignore # noqa: F821, F722
        return [self._release()] if device == EC else []

    @method()
    def GetResults(self, device: "s") -> "a{sv}":  # type: ignore # noqa: F821, F722
        if not self.staged:
            raise DBusError("org.freedesktop.fwupd.NothingToDo", "No results")
        release = {"Version": Variant("s", self.staged)}
        return {**self._device(), "Release": Variant("aa{sv}", [release])}

    @method()
    async def Install(self, device: "s", handle: "h", options: "a{sv}") -> None:  # type: ignore # noqa: F821, F722
        with open(handle, "rb") as file:
            content = file.read()
        plain = {name: value.value for name, value in options.items()}
        self.installed.append((device, content, plain))
        self.status, self.percent = 5, 40
        self.began.set()
        try:
            await self._write()
        finally:
            self.status, self.percent = 1, 0

    async def _write(self) -> None:
        match self.mode:
            case "refuse":
                raise DBusError("org.freedesktop.fwupd.InvalidFile", "signature is not valid")
            case "stall":
                await self.go_on.wait()
                self.version = "1.0.4"
            case "gone":
                self.leave.set()
                await asyncio.Event().wait()
            case "staged":
                self.staged = "1.0.4"
            case "success":
                self.version = "1.0.4"

    @dbus_property(access=PropertyAccess.READ)
    def Percentage(self) -> "u":  # type: ignore # noqa: F821
        return self.percent

    @dbus_property(access=PropertyAccess.READ)
    def Status(self) -> "u":  # type: ignore # noqa: F821
        return self.status


class FakeLogind(ServiceInterface):
    def __init__(self) -> None:
        super().__init__("org.freedesktop.login1.Manager")
        self.asked = asyncio.Event()
        self.times = 0

    @method()
    def Reboot(self, interactive: "b") -> None:  # type: ignore # noqa: F821
        self.times += 1
        self.asked.set()


@asynccontextmanager
async def served(
    address: str, name: str, path: str, interface: ServiceInterface
) -> AsyncIterator[MessageBus]:
    bus = await MessageBus(
        bus_address=address, bus_type=BusType.SYSTEM, negotiate_unix_fd=True
    ).connect()
    bus.export(path, interface)
    await bus.request_name(name)
    try:
        yield bus
    finally:
        bus.disconnect()
        await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def fake_fwupd(address: str) -> AsyncIterator[FakeFwupd]:
    fwupd = FakeFwupd()
    async with served(address, "org.freedesktop.fwupd", "/", fwupd) as bus:

        async def vanish() -> None:
            await fwupd.leave.wait()
            bus.disconnect()

        leaving = asyncio.create_task(vanish())
        try:
            yield fwupd
        finally:
            leaving.cancel()


def system_environment(address: str) -> dict[str, str]:
    """Of a process whose system bus it is."""
    return {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": address}
