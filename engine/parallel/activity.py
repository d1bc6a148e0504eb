"""What a rank is at this moment, for whoever asks from another thread."""

import time

from engine.protocol.steps import Activity, Doing


class ActivityLog:
    """Written by the thread that computes, read by any. One tuple is replaced, so that a reader
    never sees the name of one thing with the time of another."""

    __slots__ = ("_now",)

    def __init__(self) -> None:
        self._now: tuple[Doing, int | None, float] = ("", None, time.monotonic())

    @property
    def doing(self) -> Doing:
        return self._now[0]

    @property
    def layer(self) -> int | None:
        """Counted from 0; None outside of layers."""
        return self._now[1]

    @property
    def since(self) -> float:
        """By time.monotonic()."""
        return self._now[2]

    def at(self, doing: Doing, layer: int | None = None) -> None:
        self._now = (doing, layer, time.monotonic())

    def read(self) -> Activity:
        doing, layer, since = self._now
        return Activity(doing, layer, time.monotonic() - since)
