"""Once a second: every probe and every head, as one numbered message."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from engine.agent.clock import PanelClock
from engine.agent.engine_samples import engine_samples, silent_samples
from engine.agent.heads import Heads
from engine.agent.outbox import Outbox
from engine.agent.probes import NodeProbes
from engine.agent.sources import Sources
from engine.agent.supervisor import Supervisor
from monitoring.samples import Sample

log = logging.getLogger(__name__)

PERIOD_SECONDS = 1.0


class TelemetryLoop:
    """Probes run in one thread of their own: one that hangs costs host values, never a beat."""

    def __init__(
        self,
        supervisor: Supervisor,
        heads: Heads,
        added: Callable[[], None] = lambda: None,
        probes: NodeProbes | None = None,
    ) -> None:
        """`added` is called when there is something to send."""
        self.clock = PanelClock()
        self.outbox = Outbox(self.clock)
        self.sources = Sources()
        self._added = added
        self._supervisor = supervisor
        self._heads = heads
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="probes")
        self._reading: asyncio.Future[list[Sample]] | None = None
        self._late = False
        self._probes = probes or NodeProbes(Path("/"))

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        try:
            while True:
                host = await self._read_probes()
                own = [*host, self.clock.sample(), *self._read_heads()]
                samples = self.sources.with_own(own)
                self.outbox.add(self.clock.local(), samples)
                self._added()
                due = max(due + PERIOD_SECONDS, loop.time())
                await asyncio.sleep(due - loop.time())
        finally:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._probes.close()
            self.sources.close()

    async def _read_probes(self) -> list[Sample]:
        """A late reading is dropped: old values must not pass for new ones."""
        if self._reading is None:
            self._tell_probes()
            loop = asyncio.get_running_loop()
            self._reading = loop.run_in_executor(self._thread, self._probes.read)
        done, _ = await asyncio.wait({self._reading}, timeout=PERIOD_SECONDS)
        if not done:
            if not self._late:
                log.warning("The hardware probes take longer than %g s.", PERIOD_SECONDS)
            self._late = True
            return []
        self._late = False
        reading, self._reading = self._reading, None
        return reading.result()

    def _tell_probes(self) -> None:
        """What they may ask back, from this thread: theirs must not walk what it changes."""
        living = {
            key: process
            for key, process in self._supervisor.processes.items()
            if process.pid is not None and process.life != "exited"
        }
        self._probes.targets = {
            f"launch:{key}": process.pid for key, process in living.items() if process.pid
        }
        floor = max((process.spec.memory_floor for process in living.values()), default=0)
        self._probes.floor = floor or None
        self._probes.serving = any(
            view.stats is not None and not view.silence and view.stats.running
            for view in self._heads.living()
        )

    def _read_heads(self) -> list[Sample]:
        samples: list[Sample] = []
        for view in self._heads.living():
            if view.stats is None or view.silence:
                samples += silent_samples(view.process.spec.launch, view.silence)
            else:
                samples += engine_samples(view.stats, view.stalled_for)
        return samples
