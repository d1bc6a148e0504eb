"""Every source that the panel has configured for this node, together with what it reads itself."""

import time
from collections.abc import Sequence

from engine.agent.polled import Clock, Opener, Polled
from engine.agent.readers import PolledSource, reader_of
from monitoring.probes.choice import best_of_each, plugs_together
from monitoring.probes.declared import declared_noise, declared_power
from monitoring.probes.outside import age_of
from monitoring.probes.sound.fan_law import estimate
from monitoring.samples import Sample
from monitoring.sources import DeclaredNoise, DeclaredPower, FanLawSource, PduSource, Source

END_SECONDS = 3.0
"""For the sessions to be ended when the agent stops."""


class Sources:
    def __init__(self, opener: Opener = reader_of, clock: Clock = time.monotonic) -> None:
        self._opener = opener
        self._clock = clock
        self._sources: list[Source] = []
        self._polled: dict[PolledSource, Polled] = {}
        self._leaving: list[Polled] = []

    def set(self, sources: Sequence[Source]) -> None:
        """Those that changed begin anew; the others do not notice."""
        wanted = {source: None for source in sources if isinstance(source, PolledSource)}
        for source in [source for source in self._polled if source not in wanted]:
            leaving = self._polled.pop(source)
            leaving.stop()
            self._leaving.append(leaving)
        for source in wanted:
            if source not in self._polled:
                self._polled[source] = Polled(source, self._opener, self._clock)
        self._sources = list(sources)

    def with_own(self, own: Sequence[Sample]) -> list[Sample]:
        """The node's own readings and those from outside, the best of each series."""
        if not self._sources:
            return list(own)
        read = [sample for polled in self._polled.values() for sample in polled.samples()]
        pdus = [source for source in self._sources if isinstance(source, PduSource)]
        outside = plugs_together(pdus, read)
        known = best_of_each([*outside, *own])
        said = [sample for source in self._sources for sample in _said(source, known)]
        return best_of_each([*outside, *said, *own])

    def close(self) -> None:
        """Sessions are ended, within a deadline."""
        ends = time.monotonic() + END_SECONDS
        leaving = [*self._leaving, *self._polled.values()]
        for polled in leaving:
            polled.stop()
        for polled in leaving:
            polled.join(ends - time.monotonic())
        self._polled, self._leaving, self._sources = {}, [], []


def _said(source: Source, known: Sequence[Sample]) -> list[Sample]:
    """What follows without asking anybody."""
    match source:
        case FanLawSource():
            samples = estimate(source, known)
            reason = samples[0].reason
            return [*samples, age_of(source, None if reason else 0.0, reason)]
        case DeclaredNoise():
            return declared_noise(source)
        case DeclaredPower():
            return declared_power(source)
    return []
