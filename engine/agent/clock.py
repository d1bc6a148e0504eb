"""The panel's clock as this node knows it, from heartbeats and their answers."""

import logging
import time
from collections import deque
from collections.abc import Callable

from engine.errors import gettext_noop as _
from engine.protocol.agent import Pong
from monitoring.metrics import CLOCK_SKEW
from monitoring.samples import Sample, measured, unavailable

log = logging.getLogger(__name__)

SOURCE = "panel: heartbeats"
BELIEVED_SECONDS = 60.0
"""Of the answers of this long, the one with the least round trip is believed."""
DRIFT_SECONDS = 0.05
"""What two clocks may part in that time without one having been set."""
STEP_SECONDS = 60.0
"""A panel that is set back further than this is followed at once; less is made up for slowly."""
SLOWEST = 0.5
"""Seconds that a stamp advances in one second while the panel's clock is waited for."""
WARN_SECONDS = 5.0

UNASKED = _("The panel has not answered a heartbeat yet.")
UNANSWERED = _("The panel has not answered a heartbeat in the last minute.")


class PanelClock:
    """Counts on the monotonic clock, so a node whose clock is set makes no hole and no second
    twice."""

    def __init__(
        self,
        steady: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._steady, self._wall = steady, wall
        self._origin = wall() - steady()
        self._heard: deque[tuple[float, float, float]] = deque()
        """When an answer came, its round trip, and the difference it told."""
        self._offset: float | None = None
        self._stamped: tuple[float, float] | None = None
        self._warned = False

    @property
    def known(self) -> bool:
        return self._offset is not None

    def local(self) -> float:
        """Unix seconds as of this agent's start, counted on without a look at the node's clock."""
        return self._origin + self._steady()

    def hear(self, pong: Pong) -> None:
        """RFC 5905: the difference is off by half the round trip at most."""
        back = self.local()
        round_trip = (back - pong.asked_at) - (pong.answered_at - pong.heard_at)
        if not 0.0 <= round_trip <= BELIEVED_SECONDS:
            return  # No answer to a question of this agent, or the panel's clock was being set.
        offset = ((pong.heard_at - pong.asked_at) + (pong.answered_at - back)) / 2
        self._forget(back)
        if any(
            abs(offset - told) > (round_trip + taken) / 2 + DRIFT_SECONDS
            for _at, taken, told in self._heard
        ):
            self._heard.clear()  # A clock was set: what was told before holds no more.
        self._heard.append((back, round_trip, offset))
        self._offset = min(self._heard, key=lambda heard: heard[1])[2]
        self._warn()

    def stamp(self, local: float) -> float:
        """The panel's time at a moment of `local()`. Give the moments in their order: stamps only
        grow, unless the panel's own clock was set back far."""
        at = local + (self._offset or 0.0)
        if self._stamped is not None:
            before, stamped = self._stamped
            least = stamped + SLOWEST * max(0.0, local - before)
            if at < least < at + STEP_SECONDS:
                at = least
        self._stamped = local, at
        return at

    def skew(self) -> float | None:
        """The panel's clock minus the node's as it stands now; None while nothing recent told."""
        local = self.local()
        self._forget(local)
        if self._offset is None or not self._heard:
            return None
        return local + self._offset - self._wall()

    def sample(self) -> Sample:
        skew = self.skew()
        if skew is None:
            reason = UNANSWERED if self.known else UNASKED
            return unavailable(CLOCK_SKEW, reason, source=SOURCE, scope="host")
        return measured(CLOCK_SKEW, skew, source=SOURCE, scope="host")

    def _forget(self, now: float) -> None:
        while self._heard and now - self._heard[0][0] > BELIEVED_SECONDS:
            self._heard.popleft()

    def _warn(self) -> None:
        skew = self.skew() or 0.0
        if abs(skew) > WARN_SECONDS and not self._warned:
            log.warning("This node's clock differs from the panel's by %.1f s.", -skew)
        self._warned = abs(skew) > WARN_SECONDS
