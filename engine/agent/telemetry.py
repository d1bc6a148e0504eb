"""Once a second: every probe and every head, as one numbered message."""

import asyncio
import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from engine.agent.engine_samples import engine_samples, silent_samples
from engine.agent.heads import Heads
from engine.agent.outbox import Outbox
from engine.agent.supervisor import Supervisor
from monitoring.probes.base import ProbeRunner
from monitoring.probes.gpu import GpuProbe
from monitoring.probes.host import CpuProbe, MemoryProbe, NetworkProbe, ThermalProbe
from monitoring.probes.power import RaplProbe
from monitoring.probes.process import ProcessProbe
from monitoring.samples import Sample

log = logging.getLogger(__name__)

PERIOD_SECONDS = 1.0


class TelemetryLoop:
    """Probes run in one thread of their own: one that hangs costs host values, never a beat."""

    def __init__(self, supervisor: Supervisor, heads: Heads) -> None:
        self.outbox = Outbox()
        self._supervisor = supervisor
        self._heads = heads
        self._targets: Mapping[str, int] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="probes")
        self._reading: asyncio.Future[list[Sample]] | None = None
        self._late = False
        self._runner = ProbeRunner(
            [
                CpuProbe(),
                MemoryProbe(),
                NetworkProbe(),
                ThermalProbe(),
                GpuProbe(),
                RaplProbe(),
                ProcessProbe(lambda: self._targets),
            ]
        )

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        try:
            while True:
                host = await self._read_probes()
                samples = [*host, *self._read_heads()]
                self.outbox.add(time.time(), samples)
                due = max(due + PERIOD_SECONDS, loop.time())
                await asyncio.sleep(due - loop.time())
        finally:
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _read_probes(self) -> list[Sample]:
        """A late reading is dropped: old values must not pass for new ones."""
        if self._reading is None:
            self._targets = self._pids()
            loop = asyncio.get_running_loop()
            self._reading = loop.run_in_executor(self._thread, self._runner.read)
        done, _ = await asyncio.wait({self._reading}, timeout=PERIOD_SECONDS)
        if not done:
            if not self._late:
                log.warning("The hardware probes take longer than %g s.", PERIOD_SECONDS)
            self._late = True
            return []
        self._late = False
        reading, self._reading = self._reading, None
        return reading.result()

    def _pids(self) -> dict[str, int]:
        return {
            f"launch:{key}": process.pid
            for key, process in self._supervisor.processes.items()
            if process.pid is not None and process.life != "exited"
        }

    def _read_heads(self) -> list[Sample]:
        samples: list[Sample] = []
        for view in self._heads.living():
            if view.stats is None or view.silence:
                samples += silent_samples(view.process.spec.launch, view.silence)
            else:
                samples += engine_samples(view.stats, view.stalled_for)
        return samples
