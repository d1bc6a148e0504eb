"""Follows what the heads on this node say about themselves."""

import asyncio
import time
from collections.abc import Callable, Hashable

import aiohttp
import msgspec

from engine.agent.process import EngineProcess
from engine.agent.supervisor import Supervisor
from engine.drivers.base import NoAnswer
from engine.errors import gettext_noop as _
from engine.errors import said
from engine.protocol.stats import EngineStats
from engine.protocol.steps import Phase

BUSY_POLL_SECONDS = 0.25
"""Of a head that starts or recovers."""
READY_POLL_SECONDS = 1.0
SILENT_SECONDS = 3.0
"""A head that answered and then does not for this long is reported as silent."""


class HeadView:
    """One head, as last heard."""

    def __init__(self, process: EngineProcess) -> None:
        self.process = process
        self.restarts = process.restarts
        """A head that was started again is another one: nothing that was heard holds any more."""
        self.stats: EngineStats | None = None
        self.silence = _("The head has not answered yet.")
        """Why the last poll brought nothing; empty when it did."""
        self.asking = False
        self.due = 0.0
        """When to ask again, on the monotonic clock."""
        self._heard_at = 0.0
        self._progress: Hashable = None
        self._told: Hashable = None
        self._progressed_at = time.monotonic()

    def hear(self, stats: EngineStats) -> None:
        now = time.monotonic()
        progress = self.process.driver.progress(stats)
        if progress != self._progress or not (stats.running or stats.waiting):
            self._progress, self._progressed_at = progress, now
        self.stats, self.silence, self._heard_at = stats, "", now

    @property
    def is_ready(self) -> bool:
        """As far as was heard. An engine that is not ours says "ready" from its first word on."""
        heard = self.stats is not None and not self.silence and self.stats.status == "ready"
        return heard and self.process.status == "running"

    @property
    def stalled_for(self) -> float:
        """Seconds with work in hand and no progress."""
        return time.monotonic() - self._progressed_at

    def reported(self) -> EngineStats | None:
        """What the control plane is told: the last words, and a remark when they are old."""
        if self.stats is None:
            return None
        if self.silence and time.monotonic() - self._heard_at > SILENT_SECONDS:
            return msgspec.structs.replace(self.stats, detail=said(self.silence))
        if self.stalled_for > self.process.driver.stall_seconds:
            remark = said(_("It has work but has made no progress for a while."))
            return msgspec.structs.replace(self.stats, detail=remark)
        return self.stats

    def has_news(self) -> bool:
        """True once for every change the control plane should hear of at once."""
        before, self._told = self._told, self._summary()
        return self._told != before

    def _summary(self) -> Hashable:
        stats = self.reported()
        if stats is None:
            return None
        ranks = tuple(
            (rank.rank, _settled(rank.phase), rank.connected, rank.progress, rank.detail)
            for rank in stats.ranks
        )
        return stats.status, stats.detail, ranks


def _settled(phase: Phase) -> Phase:
    """A serving rank flips between idle and step many times a second; that is no news."""
    return "ready" if phase in ("idle", "step") else phase


class Heads:
    """Asks every living head: four times a second unless it is ready, then once a second."""

    def __init__(self, supervisor: Supervisor, changed: Callable[[], None]) -> None:
        self.views: dict[str, HeadView] = {}
        self._supervisor = supervisor
        self._changed = changed

    def stats(self) -> list[EngineStats]:
        reports = (view.reported() for view in self.living())
        return [report for report in reports if report is not None]

    def living(self) -> list[HeadView]:
        """What is known of those that live now: nothing is told of one that has died since."""
        self._follow_living()
        return list(self.views.values())

    def hurry(self) -> None:
        """A process ended or began: ask at once what their head makes of it."""
        for view in self.views.values():
            view.due = 0.0

    async def greet(self) -> None:
        """Ask every head once, so that a first report of adopted engines knows what they are at."""
        async with aiohttp.ClientSession(trust_env=False) as http:
            await asyncio.gather(*(self._ask(http, view) for view in self.living()))

    async def run(self) -> None:
        async with aiohttp.ClientSession(trust_env=False) as http, asyncio.TaskGroup() as tasks:
            while True:
                for view in self.living():
                    if not view.asking and view.due <= time.monotonic():
                        view.asking = True
                        tasks.create_task(self._ask(http, view))
                await asyncio.sleep(BUSY_POLL_SECONDS)

    def _mark_ready(self, view: HeadView) -> None:
        """Unless the one that answered has died since."""
        if view.restarts == view.process.restarts:
            view.process.mark_ready()

    def _follow_living(self) -> None:
        self.views = {
            key: self._view(key, process)
            for key, process in self._supervisor.processes.items()
            if process.spec.role == "head" and process.life == "alive"
        }

    def _view(self, key: str, process: EngineProcess) -> HeadView:
        view = self.views.get(key)
        return view if view and view.restarts == process.restarts else HeadView(process)

    async def _ask(self, http: aiohttp.ClientSession, view: HeadView) -> None:
        process = view.process
        try:
            view.hear(await process.driver.stats(http, process.spec))
        except NoAnswer as silence:
            view.silence = str(silence)
        if process.status == "starting" and await process.driver.ready(http, process.spec):
            self._mark_ready(view)
        view.due = time.monotonic() + (READY_POLL_SECONDS if view.is_ready else 0.0)
        view.asking = False
        if view.has_news():
            self._changed()
