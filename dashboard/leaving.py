"""Whether this process was asked to end. Answers on their way are not given up then: heads keep
them for a while, and their callers come back for them to whoever takes this process's place."""

import signal
import threading
from collections.abc import Iterable
from types import FrameType

_signals: set[int] = set()
"""Those that came."""


def asked() -> bool:
    return bool(_signals)


def watch(numbers: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT)) -> None:
    """Note these signals and pass them on to who handles them now. In the main thread alone."""
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            _watch(number)


def _watch(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    def note(received: int, frame: FrameType | None) -> None:
        _signals.add(received)
        if callable(before):
            before(received, frame)

    if callable(before):
        signal.signal(number, note)
