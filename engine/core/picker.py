"""Who computes what in the next step. Pure."""

from collections.abc import Sequence as Ordered

from engine.config import EngineConfig
from engine.core.cap import BatchCap
from engine.core.draft import Draft
from engine.core.flight import Flight
from engine.core.queue import Waiting
from engine.core.roster import Roster
from engine.core.sequence import Sequence
from engine.protocol.steps import PENDING

MAX_PASSED = 16
"""Requests that may overtake one waiting for memory before it blocks the queue."""
LOOK_AHEAD = 8
"""Requests lacking memory that are looked past in one step."""


class Picker:
    def __init__(self, config: EngineConfig, cap: BatchCap, roster: Roster) -> None:
        self._config = config
        self._stages = config.plan.pp
        self._cap = cap
        self._roster = roster

    def draft(self, flights: Ordered[Flight], now: float) -> Draft:
        """The next step, beside those that are on their way."""
        counters, config = self._roster.counters, self._config
        draft = Draft(config.token_budget, config.max_batch_size)
        preempted = counters.preemptions
        # Prompts take equal shares of the steps in a pipeline, or one of them would stall the rest.
        draft.decode(self._decodes(flights), -(-config.token_budget // self._stages))
        self._pick_prompts(draft, now if counters.preemptions == preempted else None)
        draft.top_up()
        return draft

    def _decodes(self, flights: Ordered[Flight]) -> list[Sequence]:
        """One token for each sequence that has one to compute; those who waited longest for it
        first, inside a level, where not all can go.

        That is a token that is known, or one that the step on its way draws. In a pipeline only the
        former, and each step takes its share, or stages would run empty.
        """
        residents = self._roster.residents
        ready = [sequence for sequence in residents.ready if not sequence.ended]
        most = self._cap.rows
        if self._stages > 1:
            flying = sum(not s.ended for flight in flights for s in flight.drawing)
            most = min(most, -(-(len(ready) + flying) // self._stages))
        elif flights:
            ready += flights[-1].going_on
        if len(ready) > most:
            ready.sort(key=lambda sequence: sequence.level)
        residents.ready = [sequence for sequence in ready[most:] if sequence.last != PENDING]
        picked = ready[:most]
        needy = [sequence for sequence in picked if sequence.computed >= sequence.room]
        return self._grow(picked, needy) if needy else picked

    def _grow(self, picked: list[Sequence], needy: list[Sequence]) -> list[Sequence]:
        """Give each of the needy the block that its next token needs; who of the picked can go.

        The last in rank lose their blocks until there is one, but not for a token that is not yet
        known: its sequence waits for it, and nobody's work is lost.
        """
        residents = self._roster.residents
        pool = residents.pool
        for sequence in sorted(needy, key=lambda sequence: sequence.last == PENDING):
            while not (sequence.ended or pool.available or sequence.last == PENDING):
                self._roster.preempt(residents.last())
            if pool.available and not sequence.ended:
                sequence.extend(pool.allocate(1))
        return [s for s in picked if not s.ended and s.computed < s.room]

    def _pick_prompts(self, draft: Draft, now: float | None) -> None:
        """Level by level; who waits at a better one starts first. Nobody starts without `now`."""
        residents = self._roster.residents
        prompts = [s for s in residents.prompts if not s.ended]
        residents.prompts = []
        for level in sorted({sequence.level for sequence in prompts}):
            self._admit(draft, now, level)
            self._share(draft, [s for s in prompts if s.level == level], now)
        self._admit(draft, now)

    def _share(self, draft: Draft, prompts: list[Sequence], now: float | None) -> None:
        """Equal shares of the budget, the least work first, and one share for who waits.

        A short prompt then answers after a few steps, however long the others are.
        """
        residents = self._roster.residents
        waiting = self._roster.queue.head()
        shares = len(prompts)
        if now is not None and waiting is not None:
            shares += residents.level(waiting, now) <= prompts[0].level
        for sequence in sorted(prompts, key=lambda s: s.unread):
            if draft.full:
                residents.prompts.append(sequence)
                continue
            draft.pick(sequence, min(sequence.unread, max(1, draft.budget // shares)))
            shares -= 1

    def _admit(self, draft: Draft, now: float | None, below: int | None = None) -> None:
        """Start waiting requests in order, those of a level better than `below`; past one that
        lacks memory only a bounded number go."""
        residents, queue = self._roster.residents, self._roster.queue
        seats = self._cap.rows * self._stages
        lacking: list[Waiting] = []
        while now is not None and not draft.full and len(residents) < seats:
            waiting = queue.head()
            if waiting is None or len(lacking) > LOOK_AHEAD:
                break
            if lacking and lacking[0].passed >= MAX_PASSED:
                break
            level = residents.level(waiting, now)
            if below is not None and level >= below:
                break
            queue.pop()
            sequence = self._roster.begin(waiting, level, now)
            if sequence is None:
                lacking.append(waiting)
                continue
            if lacking:
                lacking[0].passed += 1
            draft.pick(sequence, min(sequence.unread, draft.budget))
        for waiting in lacking:
            queue.push(waiting)
