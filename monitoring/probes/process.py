"""Processor and memory of single processes, each under the subject it works for."""

from collections.abc import Callable, Mapping, Sequence

import psutil

from monitoring.metrics import PROCESS_CPU, PROCESS_MEMORY, Metric
from monitoring.samples import Sample, Scope, gettext_noop, measured, unavailable

Targets = Callable[[], Mapping[str, int]]
"""Subject -> pid, asked at every reading; called from the probe's thread."""


class ProcessProbe:
    name = "process: /proc/[pid]"
    scope: Scope = "process"
    metrics: Sequence[Metric] = (PROCESS_CPU, PROCESS_MEMORY)

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._known: dict[int, psutil.Process] = {}

    def read(self) -> list[Sample]:
        targets = self._targets()
        self._known = {pid: p for pid, p in self._known.items() if pid in targets.values()}
        return [sample for subject, pid in targets.items() for sample in self._one(subject, pid)]

    def _one(self, subject: str, pid: int) -> list[Sample]:
        try:
            return self._measure(subject, pid)
        except psutil.NoSuchProcess:
            return self._absent(subject, self.metrics, gettext_noop("The process has ended."))
        except psutil.AccessDenied:
            reason = gettext_noop("This agent may not read the process.")
            return self._absent(subject, self.metrics, reason)

    def _measure(self, subject: str, pid: int) -> list[Sample]:
        process = self._known.get(pid)
        if first := process is None:
            process = self._known[pid] = psutil.Process(pid)
        percent = process.cpu_percent(interval=None)
        memory = float(process.memory_info().rss)
        held = measured(PROCESS_MEMORY, memory, source=self.name, scope=self.scope, subject=subject)
        if first:  # psutil answers 0.0 when it has nothing to compare with.
            reason = gettext_noop("A process's share needs a second reading.")
            return [*self._absent(subject, (PROCESS_CPU,), reason), held]
        busy = measured(
            PROCESS_CPU, percent / 100, source=self.name, scope=self.scope, subject=subject
        )
        return [busy, held]

    def _absent(self, subject: str, metrics: Sequence[Metric], reason: str) -> list[Sample]:
        return [
            unavailable(metric, reason, source=self.name, scope=self.scope, subject=subject)
            for metric in metrics
        ]
