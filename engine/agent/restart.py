"""Whether a process that ended unasked is started again, and when. Pure."""

import signal

import msgspec

from engine.protocol.launch import EPOCH_OVER, GIVEN_UP

FAILURES_UNTIL_EXITED = 6
STEADY_SECONDS = 60.0
"""Living this long makes up for every failure before."""
FROM_OUTSIDE = frozenset({0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP})
"""Exit codes of processes that somebody ended (0: asked to, and they did); other signals are
brought on by one's own fault."""
LEAST_SECONDS = 0.5
"""From one start to the next, whatever the reason: no process can be started in a frenzy."""


class Verdict(msgspec.Struct, frozen=True):
    failures: int
    """In a row, to be handed in with the next end."""
    delay: float | None
    """Seconds until it is started again; None when it stays as it ended."""


def judge_end(failures: int, code: int | None, lived: float, *, at_work: bool = False) -> Verdict:
    """After an end with `code` (None: it could not be started) `lived` seconds after the start.
    `at_work`: it had started well.

    An epoch that is over is nobody's failure. The delays after failures in a row: 0, 1, 2, 4, 8 s.
    One that worked until somebody killed it is in no such row.
    """
    lived = max(0.0, lived)  # The host's clock may have been set back meanwhile.
    if lived >= STEADY_SECONDS or (at_work and code in FROM_OUTSIDE):
        failures = 0
    if code == EPOCH_OVER:
        return Verdict(failures, max(0.0, LEAST_SECONDS - lived))
    failures += 1
    if code == GIVEN_UP or failures >= FAILURES_UNTIL_EXITED:
        return Verdict(failures, None)
    pause = 0.0 if failures == 1 else 2.0 ** (failures - 2)
    return Verdict(failures, max(pause, LEAST_SECONDS - lived))
