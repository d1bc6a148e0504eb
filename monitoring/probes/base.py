"""Probes: each reads one source and answers with samples, absent values included."""

import logging
from collections.abc import Sequence
from typing import Protocol

import psutil

from monitoring.metrics import Metric
from monitoring.samples import Sample, Scope, gettext_noop, unavailable

log = logging.getLogger(__name__)

READ_ERRORS = (OSError, psutil.Error, ValueError)
"""What reading a kernel file or a device may raise. Anything else is a mistake in the probe."""


class Probe(Protocol):
    """`read` may block; it is called from one thread, about once a second."""

    name: str
    scope: Scope
    metrics: Sequence[Metric]
    """What it answers for: reported unavailable when it fails as a whole."""

    def read(self) -> list[Sample]: ...


class ProbeRunner:
    """Reads all probes; one that fails costs its own values and nothing else."""

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self._failing: dict[str, str] = {}

    def read(self) -> list[Sample]:
        return [sample for probe in self._probes for sample in self._read(probe)]

    def _read(self, probe: Probe) -> list[Sample]:
        try:
            samples = probe.read()
        except READ_ERRORS as error:
            return self._failed(probe, str(error))
        self._failing.pop(probe.name, None)
        return samples

    def _failed(self, probe: Probe, cause: str) -> list[Sample]:
        if self._failing.get(probe.name) != cause:  # Once, not every second.
            log.warning("Reading %s failed: %s", probe.name, cause)
            self._failing[probe.name] = cause
        reason = gettext_noop("Reading it failed; the agent's log says why.")
        return [
            unavailable(metric, reason, source=probe.name, scope=probe.scope)
            for metric in probe.metrics
        ]
