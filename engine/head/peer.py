"""One rank as its head sees it, for one epoch."""

import asyncio
import time

from engine.head.times import StepTimes
from engine.protocol.framing import pack_frame
from engine.protocol.stats import RankStats
from engine.protocol.steps import (
    Activity,
    FromRank,
    Loaded,
    Phase,
    Pong,
    Progress,
    Ready,
    Result,
    StepDone,
    ToRank,
    encode,
)

_SAME = 0.2
"""Seconds by which the beginning of one activity may seem to move between two of its pongs."""


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
        self.activity = Activity()
        """As of the last pong."""
        self.moved_at = 0.0
        """When it last was seen to do something else than before."""
        self.expert_tokens: tuple[int, ...] = ()
        self._begun_at = 0.0
        self._ended = -1
        """The last step it has ended."""
        self._times = StepTimes()
        self._writer: asyncio.StreamWriter | None = None

    @property
    def connected(self) -> bool:
        return self._writer is not None

    def connect(self, writer: asyncio.StreamWriter, pid: int) -> None:
        self._writer, self.pid = writer, pid
        self.heard_at = self.progressed_at = time.monotonic()

    def disconnect(self) -> None:
        """Hang up once everything said has been sent."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def abort(self) -> None:
        """Hang up at once: it may never read what was said."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    def send_step(self, n: int, *, rested: bool) -> None:
        """A step is on its way to all ranks; `rested`: they had nothing to do before it."""
        self.phase, self.step = "step", n
        if rested:
            self._times.rest_before(n)

    def send(self, message: ToRank) -> None:
        """Never blocks; a rank that has gone is noticed by its reader."""
        self.send_frame(pack_frame(encode(message)))

    def send_frame(self, frame: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(frame)

    def hear(self, message: FromRank) -> None:
        """Update what is known of the rank; the group acts on the message."""
        now = self.heard_at = time.monotonic()
        match message:
            case Progress():
                self.phase, self.progress = message.phase, message.fraction
                self.detail, self.progressed_at = message.detail, now
            case Loaded():
                self.loaded, self.phase, self.progress, self.detail = message, "fitting", None, ""
            case Ready():
                self.ready, self.phase, self.progress, self.detail = message, "ready", None, ""
            case Pong():
                self._hear_pong(message, now)
            case Result() | StepDone():
                self._ended, self.moved_at = max(self._ended, message.n), now
                self.phase = "step" if self._ended < self.step else "idle"
                self._times.add(message.n, message.timings)

    def forget_times(self) -> None:
        """Of the steps so far."""
        self._times = StepTimes()

    def stats(self) -> RankStats:
        ready, heard, doing = self.ready, self.heard_at, self.activity.doing
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
            step_seconds=self._times.total.mean(),
            compute_seconds=self._times.compute.mean(),
            communicate_seconds=self._times.communicate.mean(),
            doing=doing,
            layer=self.activity.layer,
            doing_seconds=time.monotonic() - self._begun_at if doing else None,
            bubble=self._times.bubble(),
        )

    def _hear_pong(self, pong: Pong, now: float) -> None:
        activity, begun = pong.activity, now - pong.activity.seconds
        known = (self.activity.doing, self.activity.layer)
        other = (activity.doing, activity.layer) != known or begun > self._begun_at + _SAME
        if pong.n > self.step or (activity.doing and other):
            self.moved_at = now
        if other:
            self._begun_at = begun
        self.activity, self.expert_tokens = activity, pong.expert_tokens
        if self.ready is not None:
            self.step = max(self.step, pong.n)
            self.phase = "step" if self._ended < self.step else pong.phase
