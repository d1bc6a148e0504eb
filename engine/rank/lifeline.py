"""What ends a rank process: its parent, a signal, or itself. No rank outlives its agent."""

import contextlib
import ctypes
import os
import signal
import sys
import threading
from functools import cache
from typing import NoReturn

from engine.errors import ConfigError
from engine.logs import encode_line, redact, wanted_format
from engine.protocol.launch import AT_WORK

PULSE_VARIABLE = "TANDEM_PULSE_FD"
_PULSE_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1
_at_work = threading.Event()


def say(sentence: str) -> None:
    """One line in the log that the agent follows."""
    line = encode_line(sentence, logger="engine.rank") if _as_json() else redact(sentence)
    print(line, flush=True)


def leave(code: int) -> NoReturn:
    """End at once, whatever other threads are blocked in."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@cache
def _as_json() -> bool:
    try:
        return wanted_format() == "json"
    except ConfigError:
        return False  # Its agent does not start with such a setting.


def follow_parent() -> None:
    """Ask Linux to kill this process when its parent dies; elsewhere standard input tells."""
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        leave(1)


def pulse() -> None:
    """Tell whoever started this process, twice a second, that its interpreter still runs: a byte to
    the descriptor in TANDEM_PULSE_FD, if there is one."""
    descriptor = os.environ.get(PULSE_VARIABLE, "")
    if descriptor.isdecimal():
        threading.Thread(target=_beat, args=(int(descriptor),), name="pulse", daemon=True).start()


def at_work() -> None:
    """Have the pulse say from now on that this process has started and does its work."""
    _at_work.set()


def watch_stdin() -> None:
    """Leave when standard input closes: whoever holds its other end is gone."""
    threading.Thread(target=_until_stdin_closes, name="lifeline", daemon=True).start()


def stop_on_signals() -> None:
    """Leave at once on SIGTERM or SIGINT, even while the main thread waits inside a collective."""
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    threading.Thread(target=_until_signal, args=(signals,), name="signals", daemon=True).start()


def _beat(descriptor: int) -> None:
    pause = threading.Event()
    with contextlib.suppress(OSError):  # nobody listens any more
        while not pause.wait(_PULSE_SECONDS):
            os.write(descriptor, AT_WORK if _at_work.is_set() else b".")


def _until_stdin_closes() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    say("Whoever started this rank is gone; leaving.")
    leave(0)


def _until_signal(signals: set[signal.Signals]) -> None:
    name = signal.Signals(signal.sigwait(signals)).name
    say(f"Stopped by {name}.")
    leave(0)
