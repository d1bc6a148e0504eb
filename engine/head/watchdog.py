"""Notices ranks that are there but no longer answer, or answer and get nowhere.

Progress is health: a slow rank that still moves from layer to layer gets its time.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import NoReturn

from engine.head.deadlines import Deadlines
from engine.head.group import RankGroup
from engine.head.pace import Pace
from engine.head.peer import RankPeer
from engine.head.wording import mute, stuck
from engine.protocol.steps import Doing, Ping, Step

_TICK = 0.25
_MOST_PER_TICK = 0.5
"""A head that was itself stopped or starved must not blame its ranks for that time."""
_FOR_OTHERS: frozenset[Doing] = frozenset({"waiting", "all-reduce", "gather", "send", "receive"})
"""What a rank is at while it needs another one to go on."""


class _Flight:
    def __init__(self, step: Step, ranks: Iterable[int]) -> None:
        self.n = step.n
        self.tokens = sum(len(row.tokens) for row in step.rows)
        self.sent_at = time.monotonic()
        self.ranks = set(ranks)
        self.idle = 0.0
        """Seconds of being the oldest step without a sign of progress from any of its ranks."""


class Watchdog:
    """Follows every step on its way and pings the ranks."""

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

    async def run(self) -> NoReturn:
        """Until a rank is hung; raises DeadlineError naming the rank and what it was at."""
        before, pinged = time.monotonic(), 0.0
        while True:
            await asyncio.sleep(min(_TICK, self._deadlines.ping / 2))
            now = time.monotonic()
            spent = min(now - before, _MOST_PER_TICK)
            self._listen(spent, before)
            self._check_mute()
            self._check_stuck(spent, before)
            before = now
            if now - pinged >= self._deadlines.ping:
                self._group.broadcast(Ping())
                pinged = now

    def _listen(self, spent: float, since: float) -> None:
        for peer in self._group.peers:
            heard = not peer.connected or (peer.heard_at or 0.0) >= since
            self._silent[peer.rank] = 0.0 if heard else self._silent[peer.rank] + spent

    def _check_mute(self) -> None:
        quietest = max(self._group.peers, key=lambda peer: self._silent[peer.rank])
        limits = self._deadlines
        limit = limits.mute if quietest.ready is not None else limits.loading_mute
        silent = self._silent[quietest.rank]
        if silent > limit:
            raise mute(quietest, silent)

    def _check_stuck(self, spent: float, since: float) -> None:
        oldest = next(iter(self._flights.values()), None)
        if oldest is None:
            return
        late = [peer for peer in self._group.peers if peer.rank in oldest.ranks]
        moved = any(peer.moved_at >= since for peer in self._group.peers)
        oldest.idle = 0.0 if moved else oldest.idle + spent
        if oldest.idle > self._pace.limit(oldest.tokens):
            # Who waits in a collective waits for one who does not.
            suspects = [peer for peer in late if peer.activity.doing not in _FOR_OTHERS] or late
            raise stuck(suspects, oldest.n, oldest.idle)
