"""How often a head's process looks for reference cycles."""

import gc

YOUNG = 50_000
"""New objects between two looks."""


def collect_rarely() -> None:
    """A step makes thousands of objects that die young and are in no cycle. At Python's own
    threshold of 700 a quarter of the scheduler's time went into looking through them."""
    gc.set_threshold(YOUNG, 20, 20)
