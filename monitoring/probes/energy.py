"""Joules where only watts can be read: an estimate, and said to be one."""

import time
from collections.abc import Callable

from monitoring.metrics import ENERGY
from monitoring.samples import Sample, Scope, gettext_noop, measured, unavailable

MOST_INTERVALS = 3.0
NEEDS_POWER = gettext_noop("No power has been read yet from which energy could be reckoned.")


class Integrator:
    """Adds up watts over time, from 0 when it is made. What was drawn in a gap of more than three
    intervals is not known and not counted."""

    def __init__(self, interval: float, clock: Callable[[], float] | None = None) -> None:
        self._most = interval * MOST_INTERVALS
        self._clock = clock or time.monotonic
        self._joules = 0.0
        self._last: tuple[float, float] | None = None

    def add(self, watts: float | None) -> float | None:
        """Joules so far, with the reading taken just now; None before the first reading. A missing
        reading (None) is bridged unless the gap grows too long."""
        now = self._clock()
        if watts is not None:
            if self._last is not None:
                then, before = self._last
                if now - then <= self._most:
                    self._joules += (watts + before) / 2 * (now - then)
            self._last = now, watts
        return None if self._last is None else self._joules


def estimated_energy(
    power: Sample, integrator: Integrator, *, source: str, label: str = ""
) -> Sample:
    """The energy that goes with a reading of power, of the same scope and subject."""
    joules = integrator.add(power.value)
    scope: Scope = power.scope
    if joules is None:
        reason = power.reason or NEEDS_POWER
        return unavailable(
            ENERGY, reason, source=source, scope=scope, subject=power.subject, label=label
        )
    return measured(
        ENERGY,
        joules,
        source=source,
        scope=scope,
        subject=power.subject,
        label=label,
        kind="estimated",
    )
