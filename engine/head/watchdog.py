"""Notices ranks that are there but no longer answer."""

import asyncio
import time
from collections.abc import Iterable

from engine.errors import DeadlineError, Said
from engine.errors import gettext_noop as _
from engine.head.deadlines import Deadlines
from engine.head.group import RankGroup
from engine.head.pace import Pace
from engine.head.peer import RankPeer
from engine.head.wording import name_ranks
from engine.protocol.steps import Ping, Step

_TICK = 0.25
_MOST_PER_TICK = 0.5
"""A head that was itself stopped or starved must not blame its ranks for that time."""


class _Flight:
    def __init__(self, step: Step, ranks: Iterable[int]) -> None:
        self.n = step.n
        self.tokens = sum(len(row.tokens) for row in step.rows)
        self.sent_at = time.monotonic()
        self.ranks = set(ranks)
        self.age = 0.0
        """Seconds of being the oldest step."""


class Watchdog:
    """Follows every step on its way and pings ranks that have nothing to do."""

    def __init__(self, group: RankGroup, deadlines: Deadlines) -> None:
        self._group = group
        self._deadlines = deadlines
        self._pace = Pace(deadlines)
        self._flights: dict[int, _Flight] = {}
        self._silent = {peer.rank: 0.0 for peer in group.peers}
        """Seconds since each was heard, without those in which this head could not listen."""

    @property
    def waiting(self) -> bool:
        """Whether some rank has not ended every step."""
        return bool(self._flights)

    def sent(self, step: Step) -> None:
        self._flights[step.n] = _Flight(step, (peer.rank for peer in self._group.peers))

    def finished(self, peer: RankPeer, n: int) -> None:
        flight = self._flights.get(n)
        if flight is None:
            return
        flight.ranks.discard(peer.rank)
        if not flight.ranks:
            del self._flights[n]
            self._pace.learn(flight.tokens, time.monotonic() - flight.sent_at)

    async def run(self) -> None:
        """Until a rank is hung; never returns, raises DeadlineError naming the rank and step."""
        before, pinged = time.monotonic(), 0.0
        while True:
            await asyncio.sleep(min(_TICK, self._deadlines.ping / 2))
            now = time.monotonic()
            spent = min(now - before, _MOST_PER_TICK)
            self._listen(spent, before)
            before = now
            if now - pinged >= self._deadlines.ping:
                self._group.broadcast(Ping())
                pinged = now
            self._check(spent)

    def _listen(self, spent: float, since: float) -> None:
        for peer in self._group.peers:
            heard = (peer.heard_at or 0.0) >= since
            self._silent[peer.rank] = 0.0 if heard else self._silent[peer.rank] + spent

    def _check(self, spent: float) -> None:
        oldest = next(iter(self._flights.values()), None)
        if oldest is None:
            self._check_idle()
            return
        oldest.age += spent
        mute = max(min(self._silent[rank], oldest.age) for rank in oldest.ranks)
        if mute > self._deadlines.mute or oldest.age > self._pace.limit(oldest.tokens):
            raise DeadlineError(
                _("No answer from %(ranks)s during step %(step)s (%(seconds)s s)."),
                ranks=self._suspects(oldest),
                step=oldest.n,
                seconds=round(oldest.age, 1),
            )

    def _suspects(self, flight: _Flight) -> Said:
        """Ranks that do not even answer pings; when all do, all that have not ended the step.

        In a collective the others wait for the one that stopped, and are not to blame.
        """
        late = sorted(flight.ranks)
        return name_ranks([r for r in late if self._silent[r] > 2 * self._deadlines.ping] or late)

    def _check_idle(self) -> None:
        for peer in self._group.peers:
            silence = self._silent[peer.rank]
            if peer.ready is not None and silence > self._deadlines.silence:
                raise DeadlineError(
                    _("Rank %(rank)s stopped answering while it was idle (%(seconds)s s)."),
                    rank=peer.rank,
                    seconds=round(silence, 1),
                )
