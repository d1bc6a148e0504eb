"""What ends a rank process: its parent, a signal, or itself. No rank outlives its agent."""

import ctypes
import os
import signal
import sys
import threading
from typing import NoReturn

_PR_SET_PDEATHSIG = 1


def say(sentence: str) -> None:
    """One line in the log that the agent follows."""
    print(sentence, flush=True)


def leave(code: int) -> NoReturn:
    """End at once, whatever other threads are blocked in."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def follow_parent() -> None:
    """Ask Linux to kill this process when its parent dies; elsewhere standard input tells."""
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        leave(1)


def watch_stdin() -> None:
    """Leave when standard input closes: whoever holds its other end is gone."""
    threading.Thread(target=_until_stdin_closes, name="lifeline", daemon=True).start()


def stop_on_signals() -> None:
    """Leave at once on SIGTERM or SIGINT, even while the main thread waits inside a collective."""
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    threading.Thread(target=_until_signal, args=(signals,), name="signals", daemon=True).start()


def _until_stdin_closes() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    say("Whoever started this rank is gone; leaving.")
    leave(0)


def _until_signal(signals: set[signal.Signals]) -> None:
    name = signal.Signals(signal.sigwait(signals)).name
    say(f"Stopped by {name}.")
    leave(0)
