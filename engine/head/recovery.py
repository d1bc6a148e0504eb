"""What a head remembers of its epochs: which one it is in, why the last ended, and when to give
up."""

import time

from engine.errors import EngineError, Part, RankError, Said, said
from engine.errors import gettext_noop as _
from engine.head.deadlines import Deadlines


class Recovery:
    def __init__(self, deadlines: Deadlines, *, again: bool) -> None:
        self.again = again
        """Whether the launch has been served before, by this head or by one before it."""
        self.epoch = 0
        self.fault = Said()
        """Why the last epoch ended; empty while none has."""
        self.seconds: float | None = None
        """From the last fault to the first step after it."""
        self.delay = 0.0
        """To wait before this epoch may begin."""
        self._deadlines = deadlines
        self._fruitless = 0
        self._tokens = 0
        """Drawn before this epoch."""
        self._fault_at: float | None = None
        self._ready_at: float | None = None

    def ready(self) -> None:
        """The ranks are."""
        self._ready_at = time.monotonic()

    def stepped(self) -> None:
        """A step is on its way: work goes on."""
        if self._fault_at is not None:
            self.seconds = time.monotonic() - self._fault_at
            self._fault_at = None

    def next_epoch(self, error: EngineError, tokens: int) -> None:
        """An epoch ended; `tokens` were drawn in all epochs so far. Raises RankError when too many
        in a row brought none."""
        now = time.monotonic()
        self.fault = error.said
        self._fault_at = self._fault_at or now
        fruitful = tokens > self._tokens or self._lasted(now)
        self._fruitless = 0 if fruitful else self._fruitless + 1
        self._tokens, self._ready_at = tokens, None
        delays = (0.0, *self._deadlines.backing_off)
        if self._fruitless >= len(delays):
            raise RankError(
                _("The ranks were started %(times)s times and failed each time. %(fault)s"),
                times=self._fruitless,
                fault=error.said,
            ) from error
        self.epoch, self.again = self.epoch + 1, True
        self.delay = delays[self._fruitless]

    def describe(self, waiting: int, progress: Said) -> Said:
        """Why nothing goes on, how many answers wait, and how far the ranks are."""
        parts: dict[str, Part] = {"fault": self.fault, "answers": waiting, "progress": progress}
        if not self.delay:
            return said(_("%(fault)s %(answers)s answers wait. %(progress)s"), **parts)
        return said(
            _(
                "%(fault)s %(answers)s answers wait. The ranks failed %(times)s times in a row; "
                "the next attempt comes after a pause of %(seconds)s s. %(progress)s"
            ),
            **parts,
            times=self._fruitless,
            seconds=round(self.delay),
        )

    def _lasted(self, now: float) -> bool:
        return self._ready_at is not None and now - self._ready_at >= self._deadlines.fruitful
