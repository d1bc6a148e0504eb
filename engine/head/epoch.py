"""One epoch: the ranks start, steps go out, results come back, until something goes wrong."""

import asyncio
import logging
import time
from collections import deque
from typing import NoReturn

from engine.core.request import Event
from engine.core.scheduler import Scheduler
from engine.errors import RankError
from engine.errors import gettext_noop as _
from engine.head.deadlines import Deadlines
from engine.head.fit import fit_blocks
from engine.head.group import RankGroup
from engine.head.meter import Meter
from engine.head.peer import RankPeer
from engine.head.probe import Probe
from engine.head.readers import Readers
from engine.head.recovery import Recovery
from engine.head.watchdog import Watchdog
from engine.head.wording import describe_ready
from engine.protocol.steps import Result, StepDone

log = logging.getLogger(__name__)


class Epoch:
    """`live` once. What outlasts an epoch is handed in: scheduler, readers, meter."""

    def __init__(
        self,
        scheduler: Scheduler,
        readers: Readers,
        meter: Meter,
        probe: Probe,
        recovery: Recovery,
        ready: asyncio.Event,
        deadlines: Deadlines,
    ) -> None:
        self.group = RankGroup(scheduler.config.plan, deadlines, self._finished)
        self.ready = ready
        self._scheduler = scheduler
        self._readers = readers
        self._meter = meter
        self._probe = probe
        self._recovery = recovery
        self._deadlines = deadlines
        self._watchdog = Watchdog(self.group, deadlines)
        self._results: deque[Result] = deque()
        self._events: list[Event] = []
        """Of results applied; not yet with their readers."""
        self._wake = asyncio.Event()
        self._rested = True

    def wake(self) -> None:
        """There is something to do."""
        self._wake.set()

    async def live(self) -> NoReturn:
        """Ends only by raising the EngineError that ended it, and hangs up on every rank then."""
        tasks = [
            asyncio.create_task(self._work(), name="work"),
            asyncio.create_task(self._watchdog.run(), name="watchdog"),
            asyncio.create_task(self.group.watch(), name="faults"),
        ]
        try:
            done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            self.group.hang_up()
            await done.pop()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._meter.rested()
            self._readers.deliver(self._events)
        raise RankError(_("The epoch ended without a reason."))

    async def _work(self) -> None:
        await self._start()
        while True:
            self._send_steps()
            # The ranks compute by now; the text of the step before is made meanwhile.
            events, self._events = self._events, []
            if self._readers.deliver(events):
                continue
            if not (
                self._scheduler.running or self._scheduler.waiting or self._scheduler.in_flight
            ):
                self._rest()
            await self._wake.wait()
            self._wake.clear()
            self._probe.check(time.monotonic())
            self._collect()

    async def _start(self) -> None:
        first, epoch = not self._recovery.epoch, self._recovery.epoch
        await asyncio.sleep(self._recovery.delay)
        limits = self._deadlines
        await self.group.gather(limits.assembling if first else limits.reassembling)
        loaded = await self.group.load(epoch)
        config = self._scheduler.config
        blocks = fit_blocks(config, self._scheduler.capacity, loaded)
        if blocks < config.num_kv_blocks:
            log.warning(
                "Memory is left for %d of %d KV blocks on every rank.", blocks, config.num_kv_blocks
            )
        self._readers.deliver(self._scheduler.restart(epoch, blocks))
        await self.group.fit(blocks, brief=self._recovery.again)
        for peer in self.group.peers:
            if peer.ready is not None:
                log.info("%s", describe_ready(peer.rank, peer.ready))
        if self._probe.rehearsed:
            self._open()
        else:
            self._probe.rehearse()

    def _send_steps(self) -> None:
        while (step := self._scheduler.schedule(time.monotonic())) is not None:
            self._watchdog.sent(step)
            self.group.send_step(step, rested=self._rested)
            self._rested = False
            if not self._probe.singing:
                self._meter.stepped(len(step.rows))
            self._recovery.stepped()

    def _rest(self) -> None:
        """Nothing is left to do. The first time that follows a rehearsal, which every rank must
        have ended before anybody may ask."""
        self._scheduler.audit()
        self._rested = True
        if not self.ready.is_set():
            if self._watchdog.waiting:
                return
            self._probe.end_rehearsal()
            self._meter.forget()
            for peer in self.group.peers:
                peer.forget_times()
            self._open()
        self._probe.rest(self.wake)

    def _open(self) -> None:
        self._recovery.ready()
        self.ready.set()

    def _collect(self) -> None:
        while self._results:
            now = time.monotonic()
            events = self._scheduler.apply(self._results.popleft(), now)
            self._meter.record(self._probe.without_own(events), now)
            self._events += events
        if not self._scheduler.in_flight:
            self._meter.rested()

    def _finished(self, peer: RankPeer, message: Result | StepDone) -> None:
        self._watchdog.finished(peer, message.n)
        if isinstance(message, Result) and peer.rank == self.group.plan.output_rank:
            self._results.append(message)
            self._wake.set()
        elif not self.ready.is_set():
            self._wake.set()
