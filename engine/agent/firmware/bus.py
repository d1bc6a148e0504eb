"""Calls over the system's D-Bus, each with a deadline and a sentence for what goes wrong."""

import asyncio
from types import TracebackType
from typing import Any

from dbus_fast import BusType, Message, MessageType
from dbus_fast.aio import MessageBus
from dbus_fast.errors import DBusFastError

from engine.agent.firmware.errors import FirmwareError, Unsettled
from engine.errors import gettext_noop

CALL_SECONDS = 20.0

FAULTS = (OSError, EOFError, ValueError, DBusFastError)

NO_BUS = gettext_noop("This node has no D-Bus that the agent can reach.")
SLOW = gettext_noop("%(service)s has not answered within %(seconds)s s.")
ABSENT = gettext_noop("%(service)s is not installed or does not start on this node.")
GONE = gettext_noop("%(service)s ended in the middle of a call.")
REFUSED = gettext_noop("%(service)s refuses: %(words)s")

NOBODY = (
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
    "org.freedesktop.DBus.Error.Spawn.ServiceNotFound",
)
BROKE_OFF = (
    "org.freedesktop.DBus.Error.NoReply",
    "org.freedesktop.DBus.Error.Disconnected",
)


class Refusal(FirmwareError):
    """The service answers with an error; `name` is D-Bus's for it."""

    def __init__(self, service: str, name: str, words: str) -> None:
        super().__init__(REFUSED, service=service, words=words or name)
        self.name = name


class Bus:
    """One connection: `async with Bus() as bus`."""

    def __init__(self, address: str | None = None) -> None:
        self._address = address
        self._bus: MessageBus | None = None

    async def __aenter__(self) -> "Bus":
        try:
            bus = MessageBus(
                bus_address=self._address, bus_type=BusType.SYSTEM, negotiate_unix_fd=True
            )
        except FAULTS as error:
            raise FirmwareError(NO_BUS) from error
        try:
            async with asyncio.timeout(CALL_SECONDS):
                self._bus = await bus.connect()
        except FAULTS as error:
            bus.disconnect()
            raise FirmwareError(NO_BUS) from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bus is not None:
            self._bus.disconnect()

    async def call(
        self,
        service: str,
        interface: str,
        member: str,
        signature: str = "",
        body: list[Any] | None = None,
        *,
        path: str = "/",
        seconds: float = CALL_SECONDS,
        files: list[int] | None = None,
    ) -> list[Any]:
        """What it answers. Raises Refusal, Unsettled where the service broke off, FirmwareError."""
        assert self._bus is not None
        message = Message(
            destination=service,
            path=path,
            interface=interface,
            member=member,
            signature=signature,
            body=body or [],
            unix_fds=files or [],
        )
        name = service.rsplit(".", 1)[-1]
        try:
            async with asyncio.timeout(seconds):
                reply = await self._bus.call(message)
        except TimeoutError as error:
            raise Unsettled(SLOW, service=name, seconds=round(seconds)) from error
        except FAULTS as error:
            raise Unsettled(GONE, service=name) from error
        if reply is None or reply.message_type is not MessageType.ERROR:
            return list(reply.body) if reply is not None else []
        words = str(reply.body[0]) if reply.body else ""
        if reply.error_name in NOBODY:
            raise FirmwareError(ABSENT, service=name)
        if reply.error_name in BROKE_OFF:
            raise Unsettled(GONE, service=name)
        raise Refusal(name, reply.error_name or "", words[:300])
