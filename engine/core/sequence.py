"""A request while it holds KV blocks. Preemption ends a sequence, never the request."""

from dataclasses import dataclass, field

from engine.config import BLOCK_SIZE
from engine.core.blocks import BlockPool
from engine.core.prefix import block_hash
from engine.core.queue import Turn
from engine.core.request import Request
from engine.protocol.steps import PENDING


@dataclass(slots=True, eq=False)
class Sequence:
    """One admission of a request. `id` is what the ranks know it by; never reused."""

    id: int
    request: Request
    tokens: list[int]
    """What it started with; later ones are taken over from the answer a block at a time."""
    length: int
    """Tokens known; grows by one with each that was drawn."""
    computed: int
    """Tokens whose KV the ranks have been told to compute; starts at the shared prefix, and may
    be one ahead of `length`."""
    enough: int
    """Computed tokens that give the last one of the answer."""
    names: list[bytes]
    """Hashes of the leading full blocks known so far."""
    level: int
    """Its priority, as waiting had lifted it when it started."""
    turn: Turn
    table: list[int] = field(default_factory=list)
    """Block ids, in order of position."""
    room: int = 0
    """Tokens that `table` can hold."""
    last: int = PENDING
    """The token to compute next, once the prompt is; PENDING while it is being drawn."""
    full_at: int = 0
    """Tokens from which on there are blocks to offer."""
    unsent: list[int] = field(default_factory=list)
    """Blocks of `table` that the ranks have not been told of."""
    introduced: bool = False
    ended: bool = False

    @property
    def unread(self) -> int:
        """Tokens known but not computed."""
        return self.length - self.computed

    @property
    def samples(self) -> bool:
        """Whether what was computed last gives a token."""
        return self.computed == self.length and self.request.max_tokens > 0

    @property
    def rank(self) -> tuple[int, Turn]:
        """The largest is the first to give up its blocks: lowest priority, then newest."""
        return self.level, self.turn

    def extend(self, blocks: list[int]) -> None:
        self.table += blocks
        self.unsent = self.unsent + blocks  # a row may hold the list as it was
        self.room = len(self.table) * BLOCK_SIZE

    def publish(self, pool: BlockPool, stop: int) -> None:
        """Offer for sharing every block that the tokens before `stop` have filled; the result of
        the last of them has come."""
        self.tokens += self.request.emitted[len(self.tokens) - len(self.request.prompt) :]
        for index in range(len(self.names), stop // BLOCK_SIZE):
            parent = self.names[-1] if self.names else self.request.namespace
            first = index * BLOCK_SIZE
            self.names.append(block_hash(parent, self.tokens[first : first + BLOCK_SIZE]))
            pool.publish(self.table[index], self.names[index])
        self.full_at = (len(self.names) + 1) * BLOCK_SIZE
