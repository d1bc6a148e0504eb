"""Keeps this node to the limits that the panel asks for, and undoes them afterwards."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp

from engine.agent.heads import Heads
from engine.agent.limits.batches import Batches
from engine.agent.limits.devices import Devices, NvidiaDevices
from engine.agent.limits.originals import Originals
from engine.agent.limits.settings import settle
from engine.errors import gettext_noop as _
from engine.errors import said, system_words
from engine.protocol.agent import Accelerator, Limits, LimitState

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often it is seen whether a head must be told."""
RESET_SECONDS = 15.0
"""How often accelerators are set again: a driver that was loaded anew has forgotten."""
DEVICE_SECONDS = 10.0
"""A driver that takes longer to set something does not answer."""
GRACE_SECONDS = 60.0
"""What an agent before this one has limited is kept so long for the panel to ask for it again."""

UNREADABLE = _(
    "What accelerators were set to before cannot be read or written down: %(reason)s. Nothing is "
    "changed."
)
SILENT = _("The driver has not answered for %(seconds)s s.")


class LimitKeeper:
    def __init__(
        self,
        folder: Path,
        heads: Heads,
        accelerators: Sequence[Accelerator],
        changed: Callable[[], None],
        devices: Devices | None = None,
    ) -> None:
        """`changed` is called whenever there is something new to report."""
        self.follow(accelerators)
        self._folder = folder
        self._originals: Originals | None = None
        self._devices = devices or NvidiaDevices()
        self._batches = Batches(heads)
        self._changed = changed
        self._wanted: Limits | None = None
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="limits")
        self._setting: asyncio.Future[list[LimitState]] | None = None
        self._of_devices: list[LimitState] = []
        self._set_due = 0.0
        self._reported: list[LimitState] = []

    def follow(self, accelerators: Sequence[Accelerator]) -> None:
        """Those that the node has now."""
        ours = [one for one in accelerators if one.vendor == "nvidia"]
        self._indices = {one.uuid: one.index for one in ours if one.uuid}
        self._others = tuple(one.index for one in accelerators if one.vendor != "nvidia")
        self._set_due = 0.0

    def set_wanted(self, limits: Limits) -> None:
        if limits != self._wanted:
            log.info("Limits: %s", limits.why or "none")
            self._wanted, self._set_due = limits, 0.0
            self._wake.set()

    def states(self) -> list[LimitState]:
        caps = self._wanted.batch_caps if self._wanted else {}
        return [*self._of_devices, *self._batches.states(caps)]

    async def run(self) -> None:
        grace = time.monotonic() + GRACE_SECONDS
        async with aiohttp.ClientSession(trust_env=False) as http:
            while True:
                if self._wanted is not None:
                    await self._set_devices(self._wanted)
                    await self._batches.settle(http, self._wanted.batch_caps)
                elif time.monotonic() > grace:
                    await self._set_devices(Limits())
                    await self._batches.settle(http, {})
                self._report()
                await self._nap()

    async def _nap(self) -> None:
        """Until something is wanted, or it is time to look. A timeout loses no cancellation, as
        `wait_for` may in Python 3.11."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._wake.wait()
        self._wake.clear()

    async def release(self) -> None:
        """The agent ends: accelerators are set back, once `run` has ended. Heads end with it."""
        self._wanted = Limits()
        for _round in range(2):  # The first may only see the end of what was under way.
            self._set_due = 0.0
            await self._set_devices(Limits())
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _set_devices(self, wanted: Limits) -> None:
        """Never waits for a driver that hangs: what it is asked for then is tried later."""
        if self._setting is None:
            if time.monotonic() < self._set_due:
                return
            self._set_due = time.monotonic() + RESET_SECONDS
            loop = asyncio.get_running_loop()
            self._setting = loop.run_in_executor(self._thread, self._settle, wanted)
        done, _pending = await asyncio.wait({self._setting}, timeout=DEVICE_SECONDS)
        if not done:
            reason = said(SILENT, seconds=int(DEVICE_SECONDS))
            self._of_devices = [LimitState(what="power", target="node", value=None, reason=reason)]
            return
        setting, self._setting = self._setting, None
        self._of_devices = setting.result()

    def _settle(self, wanted: Limits) -> list[LimitState]:
        try:
            if self._originals is None:
                self._originals = Originals(self._folder)
            return settle(self._devices, wanted, self._originals, self._indices, self._others)
        except OSError as error:
            log.warning("What was set before cannot be read or written: %s", error)
            reason = said(UNREADABLE, reason=system_words(error))
            return [LimitState(what="power", target="node", value=None, reason=reason)]

    def _report(self) -> None:
        states = self.states()
        if states != self._reported:
            self._reported = states
            self._changed()
