"""Which KV block belongs to whom. Pure bookkeeping; the ranks hold the tensors."""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

from engine.errors import EngineError
from engine.errors import gettext_noop as _


class IntegrityError(EngineError):
    """The pool's books do not add up; the message says which block and why."""


class BlockPool:
    """Reference-counted blocks; freed ones keep their contents until the LRU list reuses them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._references = [0] * size
        self._names: list[bytes | None] = [None] * size
        self._by_name: dict[bytes, int] = {}
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(size))

    @property
    def available(self) -> int:
        return len(self._free)

    @property
    def used(self) -> int:
        """Blocks held by live sequences."""
        return self.size - len(self._free)

    @property
    def cached(self) -> int:
        """Free blocks that still hold a reusable prefix."""
        return sum(1 for block in self._free if self._names[block] is not None)

    def lookup(self, names: Iterable[bytes]) -> list[int]:
        """Blocks that hold the longest known prefix of `names`; changes nothing."""
        found: list[int] = []
        for name in names:
            block = self._by_name.get(name)
            if block is None:
                break
            found.append(block)
        return found

    def cost(self, shared: Iterable[int]) -> int:
        """How many free blocks sharing these would take."""
        return sum(1 for block in shared if self._references[block] == 0)

    def share(self, blocks: Iterable[int]) -> None:
        """Take one more reference on blocks found by `lookup`."""
        for block in blocks:
            if self._references[block] == 0:
                del self._free[block]
            self._references[block] += 1

    def allocate(self, count: int) -> list[int]:
        """Take `count` blocks, least recently used first. Caller checks `available`."""
        if count > self.available:
            raise IntegrityError(
                _("%(count)s blocks wanted, only %(free)s are free."),
                count=count,
                free=self.available,
            )
        taken = [self._free.popitem(last=False)[0] for _ in range(count)]
        for block in taken:
            self._forget(block)
            self._references[block] = 1
        return taken

    def publish(self, block: int, name: bytes) -> None:
        """Offer a full, computed block for sharing. The first block of a name keeps it."""
        if name not in self._by_name and self._names[block] is None:
            self._names[block] = name
            self._by_name[name] = block

    def release(self, blocks: Sequence[int]) -> None:
        """Drop one reference each. The tail is reused before the head, nameless blocks first."""
        for block in reversed(blocks):
            if self._references[block] < 1:
                raise IntegrityError(_("Block %(block)s was released twice."), block=block)
            self._references[block] -= 1
            if self._references[block] == 0:
                self._free[block] = None
                if self._names[block] is None:
                    self._free.move_to_end(block, last=False)

    def retract(self, blocks: Iterable[int]) -> None:
        """Stop offering these: their contents are suspect."""
        for block in blocks:
            self._forget(block)

    def audit(self, tables: Iterable[Sequence[int]]) -> None:
        """Check the books against every live block table; raises IntegrityError."""
        held: Counter[int] = Counter()
        for table in tables:
            if len(set(table)) != len(table):
                raise IntegrityError(
                    _("A block table holds a block twice: %(table)s."), table=str(list(table))
                )
            held.update(table)
        for block in range(self.size):
            references = self._references[block]
            if references != held[block]:
                raise IntegrityError(
                    _(
                        "Block %(block)s counts %(references)s references; %(tables)s tables hold "
                        "it."
                    ),
                    block=block,
                    references=references,
                    tables=held[block],
                )
            if (references == 0) != (block in self._free):
                raise IntegrityError(
                    _("Block %(block)s has %(references)s references, free list wrong."),
                    block=block,
                    references=references,
                )
            name = self._names[block]
            if name is not None and self._by_name.get(name) != block:
                raise IntegrityError(
                    _("Block %(block)s has a name that points elsewhere."), block=block
                )
        named = sum(1 for name in self._names if name is not None)
        if named != len(self._by_name):
            raise IntegrityError(
                _("%(names)s names for %(named)s named blocks."),
                names=len(self._by_name),
                named=named,
            )

    def _forget(self, block: int) -> None:
        name = self._names[block]
        if name is not None:
            del self._by_name[name]
            self._names[block] = None
