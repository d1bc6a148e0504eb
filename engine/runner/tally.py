"""Which tokens a sequence holds and how often, kept ready for arithmetic on a row of logits."""

from array import array
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class Tally:
    """Counts of distinct tokens; one more takes constant time. Ids from `limit` on are ignored."""

    def __init__(self, tokens: Iterable[int], limit: int) -> None:
        counted = Counter(token for token in tokens if token < limit)
        self._limit = limit
        self._ids = array("q", counted.keys())
        self._counts = array("f", counted.values())
        self._places = {token: place for place, token in enumerate(self._ids)}

    def add(self, token: int) -> None:
        if token >= self._limit:
            return
        place = self._places.setdefault(token, len(self._ids))
        if place == len(self._ids):
            self._ids.append(token)
            self._counts.append(0.0)
        self._counts[place] += 1.0

    # An array cannot grow while something looks into it, so nobody keeps what these return.

    @property
    def ids(self) -> NDArray[np.int64]:
        """Distinct tokens, in order of first appearance."""
        return np.frombuffer(self._ids, dtype=np.int64)

    @property
    def counts(self) -> NDArray[np.float32]:
        """Beside `ids`."""
        return np.frombuffer(self._counts, dtype=np.float32)
