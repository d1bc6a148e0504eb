"""One source outside the machine, read in a thread of its own at a pace of its own."""

import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from engine.agent.readers import PolledSource
from monitoring.metrics import ENERGY, POWER
from monitoring.probes.base import FAILED, READ_ERRORS
from monitoring.probes.energy import Integrator, estimated_energy
from monitoring.probes.outside import Reader, SourceError, absent, age_of
from monitoring.samples import Sample, gettext_noop

log = logging.getLogger(__name__)

STALE_PERIODS = 3.0
"""A reading is told again until it is this old; after that it is absent."""
LONGEST_WAIT = 30.0
"""Between two tries of a source that fails."""

FIRST = gettext_noop("The first reading has not come yet.")
OVERDUE = gettext_noop("The source has not answered for three of its periods.")

Opener = Callable[[PolledSource], Reader]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Heard:
    samples: list[Sample]
    at: float
    lasts: float
    """Seconds for which it counts."""


class Polled:
    """Its values are asked for from another thread, once a second, and never wait."""

    def __init__(self, source: PolledSource, opener: Opener, clock: Clock) -> None:
        self.source = source
        self._opener = opener
        self._clock = clock
        self._stopped = threading.Event()
        self._heard: Heard | None = None
        self._fault = ""
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name=f"source {source.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Its session is ended by its own thread, as soon as that gets to it."""
        self._stopped.set()

    def join(self, seconds: float) -> None:
        self._thread.join(max(0.0, seconds))

    def samples(self) -> list[Sample]:
        """What was read last, while it counts, and its age; else the same without values."""
        heard, now = self._heard, self._clock()
        if heard is not None and now - heard.at <= heard.lasts:
            return [*heard.samples, age_of(self.source, max(0.0, now - heard.at))]
        reason = self._reason(heard)
        missing = (
            absent(self.source, reason)
            if heard is None
            else [_without_value(sample, reason) for sample in heard.samples]
        )
        return [*missing, age_of(self.source, None, reason)]

    def _reason(self, heard: Heard | None) -> str:
        if not self._thread.is_alive():
            return self._fault or FAILED
        return self._fault or (FIRST if heard is None else OVERDUE)

    def _run(self) -> None:
        reader = self._opener(self.source)
        integrator = Integrator(reader.period, self._clock)
        try:
            while not self._stopped.is_set():
                self._stopped.wait(self._read(reader, integrator))
        finally:
            reader.close()

    def _read(self, reader: Reader, integrator: Integrator) -> float:
        """One round; answers the pause before the next."""
        began = self._clock()
        try:
            samples = reader.read()
        except SourceError as error:
            return self._failed(error.reason, max(error.wait, reader.period))
        except READ_ERRORS as error:
            log.warning("Reading %s failed: %s", self.source.origin, error)
            return self._failed(FAILED, reader.period)
        now = self._clock()
        lasts = STALE_PERIODS * max(reader.period, now - began)
        self._heard = Heard(_with_energy(samples, integrator), now, lasts)
        self._fault, self._failures = "", 0
        return max(0.0, reader.period - (now - began))

    def _failed(self, reason: str, wait: float) -> float:
        if reason != self._fault:  # Once, not at every try.
            log.warning("Source %s: %s", self.source.origin, reason)
        self._fault = reason
        self._failures += 1
        return max(wait, min(LONGEST_WAIT, math.ldexp(wait, min(self._failures - 1, 6))))


def _with_energy(samples: list[Sample], integrator: Integrator) -> list[Sample]:
    """An estimated counter where the source tells power and counts no energy."""
    power = next((s for s in samples if s.metric == POWER.name and not s.label), None)
    if power is None:
        return samples
    estimated = estimated_energy(power, integrator, source=power.source)
    return [
        estimated if s.metric == ENERGY.name and s.value is None and not s.label else s
        for s in samples
    ]


def _without_value(sample: Sample, reason: str) -> Sample:
    return msgspec.structs.replace(
        sample, value=None, kind="unavailable", reason=sample.reason or reason
    )
