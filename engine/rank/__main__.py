"""Entry of a rank process. Imports torch only after the thread count is fixed."""

import os
import sys
from collections.abc import Callable

import msgspec

from engine import logs
from engine.protocol.launch import GIVEN_UP, ProcessSpec, decode_spec
from engine.rank.lifeline import follow_parent, leave, pulse, say, stop_on_signals, watch_stdin

MAX_SPEC_BYTES = 1 << 20


def main() -> None:
    follow_parent()
    stop_on_signals()
    pulse()
    if "OMP_NUM_THREADS" in os.environ:
        # Its threads are known: with everything imported it waits, ready to take a rank's place.
        _import_rank()
    spec = _read_spec()
    logs.about(launch=spec.launch, rank=spec.rank or 0)
    logs.hide(spec.token)
    watch_stdin()
    _limit_threads(spec.config.threads_per_rank)
    # Only now, at the latest: torch reads the thread settings when it is imported.
    leave(_import_rank()(spec))


def _import_rank() -> Callable[[ProcessSpec], int]:
    # An unbounded spin starves the other ranks as soon as cores are shared.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    from engine.rank.process import run_rank

    return run_rank


def _read_spec() -> ProcessSpec:
    """Read byte-wise from the descriptor, so that nothing is buffered away from the lifeline."""
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < MAX_SPEC_BYTES:
        chunk = os.read(sys.stdin.fileno(), 1)
        if not chunk:
            break
        line += chunk
    if not line:
        leave(0)  # it was kept in case it were needed
    try:
        spec = decode_spec(bytes(line))
    except msgspec.MsgspecError as error:
        say(f"The launch spec on standard input is damaged: {error}.")
        leave(GIVEN_UP)
    if spec.role != "rank" or spec.rank is None:
        say("The launch spec on standard input is not a rank's.")
        leave(GIVEN_UP)
    return spec


def _limit_threads(count: int) -> None:
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(count)


if __name__ == "__main__":
    main()
