"""Prompts as token ids, the same for every contestant, and drawn anew for every seed."""

from random import Random

FIRST, LAST = 300, 40_000
"""Ordinary tokens of the bundled model."""


class Prompts:
    def __init__(self, vocabulary: int) -> None:
        self._tokens = range(min(FIRST, vocabulary // 2), min(LAST, vocabulary))

    def make(self, count: int, *seed: object) -> list[int]:
        return Random(repr(seed)).choices(self._tokens, k=count)
