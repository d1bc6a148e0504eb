"""A request while it holds KV blocks. Preemption ends a sequence, never the request."""

from dataclasses import dataclass, field

from engine.config import BLOCK_SIZE
from engine.core.blocks import BlockPool
from engine.core.prefix import block_hash
from engine.core.request import Request


@dataclass(slots=True, eq=False)
class Sequence:
    """One admission of a request. `id` is what the ranks know it by; never reused."""

    id: int
    request: Request
    tokens: list[int]
    """Every token whose KV is or will be computed; grows by one a sampled token."""
    table: list[int]
    """Block ids, in order of position."""
    computed: int
    """Tokens whose KV the ranks have been told to compute; starts at the shared prefix."""
    names: list[bytes]
    """Hashes of the leading full blocks known so far."""
    unsent: list[int] = field(default_factory=list)
    """Blocks of `table` that the ranks have not been told of."""
    introduced: bool = False
    in_flight: bool = False
    ended: bool = False

    @property
    def pending(self) -> int:
        """Tokens known but not computed: 1 when decoding, more in prefill."""
        return len(self.tokens) - self.computed

    @property
    def missing_blocks(self) -> int:
        """Blocks needed to hold every known token, beyond those held."""
        return -(-len(self.tokens) // BLOCK_SIZE) - len(self.table)

    def extend(self, blocks: list[int]) -> None:
        self.table += blocks
        self.unsent += blocks

    def publish(self, pool: BlockPool, until: int) -> None:
        """Offer for sharing every block that `until` computed tokens have filled."""
        for index in range(len(self.names), until // BLOCK_SIZE):
            parent = self.names[-1] if self.names else self.request.namespace
            first = index * BLOCK_SIZE
            self.names.append(block_hash(parent, self.tokens[first : first + BLOCK_SIZE]))
            pool.publish(self.table[index], self.names[index])
