"""Carrying out what the panel orders, one after another, each once: also across agents."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from engine.agent.firmware.ascend import NpuSmi
from engine.agent.firmware.bus import Refusal
from engine.agent.firmware.errors import FirmwareError, Unsettled
from engine.agent.firmware.fetch import address_on, fetch
from engine.agent.firmware.fwupd import Fwupd
from engine.agent.firmware.fwupd_values import (
    address_of,
    flags_of,
    sha256_of,
    text,
    waits_for_reset,
)
from engine.agent.firmware.notes import Notes, OrderNote
from engine.agent.firmware.reboot import NOT_ALLOWED, STILL_HERE, reboot
from engine.errors import Said, gettext_noop, said
from engine.protocol.firmware import FirmwareOrder, FirmwarePhase, FirmwareState

log = logging.getLogger(__name__)

REBOOT_SECONDS = 600.0
BACK_SECONDS = 60.0
"""For a device that detaches to be listed again."""
POLL_SECONDS = 0.5
PERCENT_STEP = 1.0
"""Less than this is not worth a report."""

AFTER_REBOOT = gettext_noop("It is written and runs after the node was restarted.")
AFTER_POWER_OFF = gettext_noop("It is written and runs after the node was switched off and on.")
OTHER_VERSION = gettext_noop("It was written without an error, but version %(version)s runs.")
NOT_OFFERED = gettext_noop(
    "fwupd on this node offers no archive with this SHA-256; let it refresh what it knows of LVFS."
)
BROKE_OFF = gettext_noop(
    "The update broke off: %(reason)s Version %(version)s runs; look at the device before trying "
    "again."
)
RESTARTED = gettext_noop("the agent was started anew in the middle of it.")
MISTAKE = gettext_noop("The agent failed at it; its log says how.")


class Orders:
    """`changed` is called on every change worth reporting, `ended` when one is at its end."""

    def __init__(
        self,
        folder: Path,
        server: str,
        token: str,
        changed: Callable[[], None],
        *,
        ended: Callable[[], None] = lambda: None,
        boot_id: str,
        allow_reboot: bool = False,
        fwupd: Fwupd | None = None,
        bus_address: str | None = None,
        reboot_seconds: float = REBOOT_SECONDS,
    ) -> None:
        self._folder = folder / "firmware"
        self._server, self._token = server, token
        self._changed, self._ended = changed, ended
        self._boot_id = boot_id
        self._allow_reboot = allow_reboot
        self._fwupd = fwupd or Fwupd(bus_address)
        self._npu = NpuSmi(self._folder)
        self._bus_address = bus_address
        self._reboot_seconds = reboot_seconds
        self._notes = Notes(self._folder)
        self._known = self._notes.load()
        self._wanted: dict[int, FirmwareOrder] = {}
        self._due = asyncio.Event()

    def set_wanted(self, orders: Sequence[FirmwareOrder]) -> None:
        """An order that is gone is forgotten; one that is at work is done to its end first."""
        self._wanted = {order.id: order for order in orders}
        for number in [n for n, note in self._known.items() if n not in self._wanted]:
            if self._known[number].final or not self._known[number].boot_id:
                self._forget(number)
        self._due.set()

    def states(self) -> list[FirmwareState]:
        return [note.state for _number, note in sorted(self._known.items())]

    async def run(self) -> NoReturn:
        while True:
            await self._due.wait()
            self._due.clear()
            for order in list(self._wanted.values()):
                note = self._known.get(order.id)
                if note is None or not note.final:
                    await self._carry_out(order)

    async def _carry_out(self, order: FirmwareOrder) -> None:
        """From wherever it stands; its end is in its note, whatever happens."""
        note = self._known.get(order.id)
        begun = note is not None and bool(note.boot_id)
        try:
            if order.channel == "reboot":
                await self._reboot(order, begun)
            elif begun:
                await self._take_up(order)
            else:
                await self._update(order)
        except FirmwareError as error:
            self._note(order, "failed", reason=error.said)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            log.error("Firmware order %d failed.", order.id, exc_info=error)
            self._note(order, "failed", reason=said(MISTAKE))
        if order.id not in self._wanted:
            self._forget(order.id)

    async def _update(self, order: FirmwareOrder) -> None:
        self._note(order, "fetching")
        file = self._file(order)
        await self._fetch(order, file)
        if order.id not in self._wanted:  # Withdrawn before anything was written.
            return
        self._note(order, "checking")
        if order.channel == "fwupd":
            await self._fwupd.device(_name(order))
        self._note(order, "installing", begin=True)
        log.info("Installing %s on %s.", order.version, order.key)
        try:
            await self._install(order, file)
        except Refusal:
            raise  # Nothing was changed, or fwupd knows that it failed.
        except Unsettled as error:
            await self._judge_after(order, error.said)

    async def _fetch(self, order: FirmwareOrder, file: Path) -> None:
        if order.path:
            url, token = address_on(self._server, order.path), self._token
        else:
            url, token = await self._offered(order), ""
        await fetch(
            url,
            file,
            sha256=order.sha256,
            size=order.size,
            token=token,
            progress=self._progress(order, "fetching"),
        )

    async def _offered(self, order: FirmwareOrder) -> str:
        """Where the archive lies, by what fwupd has from LVFS, whose word is signed."""
        for release in await self._fwupd.releases(_name(order)):
            if sha256_of(release) == order.sha256 and (address := address_of(release)):
                return address
        raise FirmwareError(NOT_OFFERED)

    async def _install(self, order: FirmwareOrder, file: Path) -> None:
        progress = self._progress(order, "installing")
        if order.channel == "npu":
            self._end(order, await self._npu.install(order.key, file, progress))
            return
        await self._fwupd.install(_name(order), file, progress, allow_older=order.allow_older)
        await self._judge(order)

    async def _judge(self, order: FirmwareOrder) -> None:
        """What fwupd says of the device once it has done its work."""
        ends = time.monotonic() + BACK_SECONDS
        while True:
            try:
                device = await self._fwupd.device(_name(order))
                break
            except FirmwareError:
                if time.monotonic() > ends:
                    raise
                await asyncio.sleep(POLL_SECONDS)
        version = text(device, "Version")
        if version == order.version:
            self._note(order, "done")
        elif waits_for_reset(device):
            off = "needs-shutdown" in flags_of(device)
            self._note(order, "staged", reason=said(AFTER_POWER_OFF if off else AFTER_REBOOT))
        else:
            raise FirmwareError(OTHER_VERSION, version=version or "?")

    async def _take_up(self, order: FirmwareOrder) -> None:
        """It began under an agent before this one: it is looked at, never done again."""
        if order.channel == "npu":
            version = await self._npu.settle(order.key)
            if version == order.version:
                self._note(order, "done")
                return
            raise FirmwareError(BROKE_OFF, reason=said(RESTARTED), version=version or "?")
        await self._judge_after(order, said(RESTARTED))

    async def _judge_after(self, order: FirmwareOrder, why: Said) -> None:
        """Nobody was told how it ended: what runs, or waits for a reset, says it."""
        if order.channel != "fwupd":
            raise FirmwareError(BROKE_OFF, reason=why, version="?")
        await self._fwupd.settle()
        try:
            await self._judge(order)
        except FirmwareError as error:
            version = error.said.parts.get("version", "?")
            raise FirmwareError(BROKE_OFF, reason=why, version=version) from error

    def _end(self, order: FirmwareOrder, version: str) -> None:
        if version == order.version:
            self._note(order, "done")
        else:  # npu-smi tells the old one until the card was reset.
            self._note(order, "staged", reason=said(AFTER_REBOOT))

    async def _reboot(self, order: FirmwareOrder, begun: bool) -> None:
        if begun and self._known[order.id].boot_id != self._boot_id:
            self._note(order, "done")
            return
        if not self._allow_reboot:
            raise FirmwareError(NOT_ALLOWED)
        if not begun:
            self._note(order, "installing", begin=True)
            log.warning("The panel has ordered this node to be restarted.")
            await reboot(self._bus_address)
        await asyncio.sleep(self._reboot_seconds)
        raise FirmwareError(STILL_HERE, minutes=round(self._reboot_seconds / 60))

    def _progress(self, order: FirmwareOrder, phase: FirmwarePhase) -> Callable[[float], None]:
        def tell(percent: float) -> None:
            note = self._known.get(order.id)  # None once it was withdrawn.
            if note is not None and abs(percent - (note.percent or 0.0)) >= PERCENT_STEP:
                # On the line only: a number is not worth a write to the disk.
                self._known[order.id] = msgspec.structs.replace(note, phase=phase, percent=percent)
                self._changed()

        return tell

    def _note(
        self,
        order: FirmwareOrder,
        phase: FirmwarePhase,
        *,
        reason: Said | None = None,
        begin: bool = False,
    ) -> None:
        before = self._known.get(order.id) or OrderNote(order=order)
        note = msgspec.structs.replace(
            before,
            phase=phase,
            percent=None,
            reason=reason or Said(),
            boot_id=(self._boot_id or "?") if begin else before.boot_id,
        )
        self._notes.write(note)
        self._known[order.id] = note
        if note.final:
            self._file(order).unlink(missing_ok=True)
            log.info("Firmware order %d: %s. %s", order.id, phase, note.reason)
            self._ended()
        self._changed()

    def _forget(self, number: int) -> None:
        note = self._known.pop(number, None)
        if note is not None:
            self._file(note.order).unlink(missing_ok=True)
        self._notes.drop(number)

    def _file(self, order: FirmwareOrder) -> Path:
        """Tools look at the ending of a name."""
        ending = Path(order.path).suffix[:12] or (".cab" if order.channel == "fwupd" else "")
        return self._folder / f"{order.id}{ending if ending != '.json' else ''}"


def _name(order: FirmwareOrder) -> str:
    """The device's, as fwupd knows it."""
    return order.key.removeprefix("fwupd:")
