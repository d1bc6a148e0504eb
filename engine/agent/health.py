"""Whether a process that lives is still at work. Pure: judged by the agent's own ticks, so that a
pause of the agent, or of the whole machine, is nobody's fault."""

from engine.errors import Said, said
from engine.errors import gettext_noop as _

TICK_SECONDS = 0.5
STOPPED_TICKS = 3
"""Looks in a row that find it stopped: more than a second."""
PULSE_TICKS = 20
"""Looks without a pulse: 10 s."""

WAS_STOPPED = _("It was stopped by a signal (SIGSTOP); ended so that it can start anew.")
NO_PULSE = _("It showed no sign of life for %(seconds)s s; ended so that it can start anew.")


class Health:
    """Of one process, from its start on."""

    def __init__(self) -> None:
        self._stopped = 0
        self._silent = 0
        self._pulses = 0

    def tick(self, stopped: bool, pulses: int) -> Said | None:
        """Why it should be ended now. `pulses`: how many came so far; 0 where there are none."""
        self._stopped = self._stopped + 1 if stopped else 0
        self._silent = 0 if pulses != self._pulses or pulses == 0 else self._silent + 1
        self._pulses = pulses
        if self._stopped >= STOPPED_TICKS:
            return said(WAS_STOPPED)
        if self._silent >= PULSE_TICKS:
            return said(NO_PULSE, seconds=int(PULSE_TICKS * TICK_SECONDS))
        return None
