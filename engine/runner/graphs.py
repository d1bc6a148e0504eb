"""What was captured for steps of one shape, kept to be played again. Pure, no torch."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

FEWEST_BLOCKS = 16
"""Shorter block tables are padded to this: a few more keys cost less than another capture."""


@dataclass(frozen=True)
class Bucket:
    """Decode steps of at most so many rows, each over at most so many blocks."""

    rows: int
    blocks: int


class Buckets:
    """Powers of two, so that a step is padded to less than twice its size."""

    def __init__(self, most_rows: int, most_blocks: int) -> None:
        """`most_blocks`: of a step, over all its rows."""
        self._most_rows = most_rows
        self._most_blocks = most_blocks

    def of(self, rows: int, blocks: int) -> Bucket | None:
        """None for a step too large to be worth a capture."""
        if not 0 < rows <= self._most_rows:
            return None
        bucket = Bucket(
            min(_power(rows), self._most_rows),
            max(FEWEST_BLOCKS, _power(blocks)),
        )
        return bucket if bucket.rows * bucket.blocks <= self._most_blocks else None

    def row_counts(self) -> list[int]:
        """Of every bucket, the most rows first: what is captured first takes the most memory,
        which the others use again."""
        counts = {min(1 << power, self._most_rows) for power in range(self._most_rows.bit_length())}
        return sorted(counts | {self._most_rows}, reverse=True)


class Graphs(Generic[T]):
    """Captures by bucket; the one that was used longest ago goes first."""

    def __init__(self, capture: Callable[[Bucket], T], most: int) -> None:
        self._capture = capture
        self._most = most
        self._kept: OrderedDict[Bucket, T] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, bucket: Bucket) -> T:
        """Captured now, where it is not there yet."""
        if bucket not in self._kept:
            while len(self._kept) >= self._most:
                self._kept.popitem(last=False)
            self._kept[bucket] = self._capture(bucket)
        self._kept.move_to_end(bucket)
        return self._kept[bucket]


def _power(count: int) -> int:
    """The smallest power of two that is no less."""
    return 1 << (count - 1).bit_length()
