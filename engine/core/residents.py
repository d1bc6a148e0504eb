"""The sequences that hold KV blocks, and the blocks."""

from collections import Counter

from engine.config import BLOCK_SIZE
from engine.core.blocks import BlockPool
from engine.core.queue import Waiting
from engine.core.sequence import Sequence


class Residents:
    def __init__(self, blocks: int) -> None:
        self.pool = BlockPool(blocks)
        self.ready: list[Sequence] = []
        """Those with one known token to compute, longest idle first. The ended ones among them
        are skipped when they come up."""
        self.prompts: list[Sequence] = []
        """Those with prompt left to send; ended ones likewise."""
        self._running: dict[int, Sequence] = {}
        self._priorities: Counter[int] = Counter()
        self._released: list[int] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._running)

    def level(self, waiting: Waiting, now: float) -> int:
        """The priority a request would run with, were it to start now.

        Waiting lifts it, but no higher than the best that one of those beside it was asked with:
        where all were asked with the same, they stay equals however long each had to wait.
        """
        priority = waiting.request.priority
        best = min(self._priorities, default=priority)
        return max(waiting.aged(now), min(best, priority))

    def start(self, waiting: Waiting, level: int) -> Sequence | None:
        """Reserve every block a request needs, sharing what is cached; None when they lack.

        One block a running sequence is left over, so that starting one does not evict another.
        """
        shared = self.pool.lookup(waiting.shareable)
        needed = -(-waiting.length // BLOCK_SIZE) - len(shared)
        if needed + self.pool.cost(shared) + len(self) > self.pool.available:
            return None
        self.pool.share(shared)
        request = waiting.request
        sequence = Sequence(
            id=self._next,
            request=request,
            tokens=request.history,
            length=waiting.length,
            computed=len(shared) * BLOCK_SIZE,
            enough=len(request.prompt) + request.max_tokens - 1,
            names=waiting.names[: len(shared)],
            level=level,
            turn=waiting.turn,
        )
        sequence.extend(shared + self.pool.allocate(needed))
        self._next += 1
        self._running[sequence.id] = sequence
        self._priorities[sequence.request.priority] += 1
        return sequence

    def last(self) -> Sequence:
        """The first to give up its blocks; ValueError when nothing runs."""
        return max(self._running.values(), key=lambda sequence: sequence.rank)

    def drop(self, sequence: Sequence) -> None:
        """Take a sequence's blocks back, and have the ranks forget it.

        A step on its way may still write to them: harmless, because ranks run steps in order and
        the next owner's step comes later.
        """
        sequence.ended = True
        del self._running[sequence.id]
        self._priorities[sequence.request.priority] -= 1
        self._priorities += Counter()  # without those that nobody has any more
        self.pool.release(sequence.table)
        if sequence.introduced:
            self._released.append(sequence.id)

    def take_released(self) -> list[int]:
        """Ids the ranks have not been told to forget yet."""
        released, self._released = self._released, []
        return released

    def audit(self) -> None:
        """Check the books against every block table; raises IntegrityError."""
        self.pool.audit(sequence.table for sequence in self._running.values())
