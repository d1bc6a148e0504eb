"""Waiting for conditions, always with a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PAUSE_SECONDS = 0.05


def wait_for(
    what: str,
    done: Callable[[], T],
    seconds: float,
    why_not: Callable[[], str] = str,
    pause: float = PAUSE_SECONDS,
) -> T:
    """The first true answer of `done`; raises TimeoutError naming `what`, and why not."""
    deadline = time.monotonic() + seconds
    while not (answer := done()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {seconds:g} s. {why_not()}".rstrip())
        time.sleep(pause)
    return answer
