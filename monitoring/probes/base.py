"""Probes: each reads one source and answers with samples, absent values included."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec
import psutil

from monitoring.metrics import Metric
from monitoring.samples import Sample, Scope, gettext_noop, unavailable

log = logging.getLogger(__name__)

READ_ERRORS = (OSError, psutil.Error, ValueError)
"""What reading a kernel file or a device may raise. Anything else is a mistake in the probe."""
DEADLINE_SECONDS = 0.7
"""For all probes together: readings are to be on their way within the second."""

FAILED = gettext_noop("Reading it failed; the agent's log says why.")
LATE = gettext_noop("It did not answer within a second.")


class Probe(Protocol):
    """`read` may block; it is called from one thread of its own, about once a second."""

    name: str
    scope: Scope
    metrics: Sequence[Metric]
    """What it answers for: reported unavailable when it fails before its first answer."""

    def read(self) -> list[Sample]: ...


class Worker:
    """One probe in its thread: whatever it does there, the others go on."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._asked = threading.Event()
        self._answered = threading.Event()
        self._closed = False
        self._samples: list[Sample] = []
        self._error: BaseException | None = None
        self._shape: list[Sample] = []
        """What it told last: that is what is missing when it tells nothing."""
        self._complained_of = ""
        self._busy = self._stuck = False
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        """Begin a reading, unless one is still on its way."""
        if self._thread is None:
            name = f"probe {self._probe.name}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()
        if self._busy and (self._error is not None or not self._answered.is_set()):
            self._stuck = True  # The others need not wait for it once more.
            return
        self._busy, self._stuck = True, False
        self._answered.clear()
        self._asked.set()

    def answer(self, patience: float) -> list[Sample]:
        """What was read; raises what is a mistake in the probe. A late reading is dropped: old
        values must not pass for new ones."""
        if not self._answered.wait(0.0 if self._stuck else max(0.0, patience)):
            return self._absent(LATE, "it takes too long")
        self._busy = False
        error, self._error = self._error, None
        if isinstance(error, READ_ERRORS):
            return self._absent(FAILED, str(error))
        if error is not None:
            raise error
        self._complained_of = ""
        self._shape = self._samples
        return self._samples

    def close(self) -> None:
        self._closed = True
        self._asked.set()

    def _run(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            if self._closed:
                return
            try:
                self._samples = self._probe.read()
            except BaseException as error:  # noqa: BLE001  # Whoever asked raises it, in `answer`.
                self._error = error
            self._answered.set()

    def _absent(self, reason: str, cause: str) -> list[Sample]:
        probe = self._probe
        if self._complained_of != cause:  # Once, not every second.
            log.warning("Reading %s failed: %s", probe.name, cause)
            self._complained_of = cause
        if self._shape:
            return [
                msgspec.structs.replace(
                    sample,
                    value=None,
                    kind="unavailable",
                    reason=sample.reason or reason,
                )
                for sample in self._shape
            ]
        return [
            unavailable(metric, reason, source=probe.name, scope=probe.scope)
            for metric in probe.metrics
        ]


class ProbeRunner:
    """Reads all probes at once; one that fails or hangs costs its own values and nothing else."""

    def __init__(self, probes: Sequence[Probe], deadline: float = DEADLINE_SECONDS) -> None:
        self._workers = [Worker(probe) for probe in probes]
        self.deadline = deadline

    def read(self) -> list[Sample]:
        """Within the deadline, from one thread at a time."""
        ends = time.monotonic() + self.deadline
        for worker in self._workers:
            worker.ask()
        return [
            sample for worker in self._workers for sample in worker.answer(ends - time.monotonic())
        ]

    def close(self) -> None:
        """Threads end as soon as their probes let them; none keeps the process alive."""
        for worker in self._workers:
            worker.close()
