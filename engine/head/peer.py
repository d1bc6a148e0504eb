"""One rank as its head sees it."""

import asyncio
import time

from engine.head.windows import Window
from engine.protocol.framing import pack_frame
from engine.protocol.stats import RankStats
from engine.protocol.steps import (
    FromRank,
    Loaded,
    Phase,
    Pong,
    Progress,
    Ready,
    Result,
    StepDone,
    Timings,
    ToRank,
    encode,
)


class RankPeer:
    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.phase: Phase = "starting"
        self.progress: float | None = None
        self.detail = ""
        self.pid: int | None = None
        self.step = -1
        self.loaded: Loaded | None = None
        self.ready: Ready | None = None
        self.heard_at: float | None = None
        self.progressed_at = time.monotonic()
        self._writer: asyncio.StreamWriter | None = None
        self._total, self._compute, self._communicate = Window(1.0), Window(1.0), Window(1.0)

    @property
    def connected(self) -> bool:
        return self._writer is not None

    def connect(self, writer: asyncio.StreamWriter, pid: int) -> None:
        self._writer, self.pid = writer, pid
        self.heard_at = self.progressed_at = time.monotonic()

    def disconnect(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def send(self, message: ToRank) -> None:
        """Never blocks; a rank that has gone is noticed by its reader."""
        self.send_frame(pack_frame(encode(message)))

    def send_frame(self, frame: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(frame)

    def hear(self, message: FromRank) -> None:
        """Update what is known of the rank; the group acts on the message."""
        self.heard_at = time.monotonic()
        match message:
            case Progress():
                self.phase, self.progress = message.phase, message.fraction
                self.detail, self.progressed_at = message.detail, self.heard_at
            case Loaded():
                self.loaded, self.phase, self.progress, self.detail = message, "fitting", None, ""
            case Ready():
                self.ready, self.phase, self.progress, self.detail = message, "ready", None, ""
            case Pong() if self.ready is not None:
                self.phase, self.step = message.phase, max(self.step, message.n)
            case Result() | StepDone():
                self.phase, self.step = "idle", max(self.step, message.n)
                self._record(message.timings)

    def forget_times(self) -> None:
        """Of the steps so far."""
        self._total, self._compute, self._communicate = Window(1.0), Window(1.0), Window(1.0)

    def stats(self) -> RankStats:
        ready = self.ready
        heard = self.heard_at
        return RankStats(
            rank=self.rank,
            phase=self.phase,
            connected=self.connected,
            pid=self.pid,
            progress=self.progress,
            detail=self.detail,
            step=self.step,
            last_seen_seconds=None if heard is None else time.monotonic() - heard,
            weight_bytes=ready.weight_bytes if ready else None,
            kv_bytes=ready.kv_bytes if ready else None,
            kv_heads=ready.kv_heads if ready else None,
            first_layer=ready.first_layer if ready else None,
            last_layer=ready.last_layer if ready else None,
            kernel=ready.kernel if ready else "",
            transport=ready.transport if ready else "",
            step_seconds=self._total.mean(),
            compute_seconds=self._compute.mean(),
            communicate_seconds=self._communicate.mean(),
        )

    def _record(self, timings: Timings) -> None:
        self._total.add(timings.total)
        self._compute.add(timings.compute)
        self._communicate.add(timings.communicate)
