"""How long people waited: from the times at which their texts came."""

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence

STALL_SECONDS = 0.5
"""A shorter gap between two texts is the ordinary pace."""
FELT_SECONDS = 3.0
"""A stall that begins within this time after a fault is counted from the fault itself."""


def waited(moved: Sequence[float], struck: float, until: float) -> tuple[float, float]:
    """Seconds to the next token of one stream, and the moment that it came.

    That is the end of the longest stall between `struck` and `until`, counted from the fault or,
    for a stall that the fault causes later, from the stall's begin; without a stall, the first text
    after the fault. Texts still on their way when the fault struck are not an end.
    """
    after = [at for at in moved[bisect_right(moved, struck) :] if at <= until]
    if not after:
        return until - struck, until
    points = [struck, *after]
    begin, end = max(itertools.pairwise(points), key=lambda gap: gap[1] - gap[0])
    if end - begin < STALL_SECONDS:
        return after[0] - struck, after[0]
    return end - (struck if begin - struck <= FELT_SECONDS else begin), end


def spread(values: Sequence[float]) -> dict[str, float | int | None]:
    """`count`, `p50`, `p95`, `max`; by the nearest rank, so each is a value that was measured."""
    ordered = sorted(values)

    def at(share: float) -> float | None:
        return round(ordered[math.ceil(share * len(ordered)) - 1], 3) if ordered else None

    return {"count": len(ordered), "p50": at(0.5), "p95": at(0.95), "max": at(1.0)}
