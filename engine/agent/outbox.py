"""Readings on their way to the panel: packed, numbered, kept until they are stored there."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from engine.agent.clock import PanelClock
from engine.protocol.agent import Telemetry
from monitoring.packing import Layout, Numbers, Packer
from monitoring.samples import Sample

KEPT_FRAMES = 3600
"""What is kept while the panel is away: an hour at 1 Hz, the oldest given up first."""
KEPT_BYTES = 64 * 2**20
CLOCK_SECONDS = 3.0
"""How long a new connection waits to learn the panel's clock before it tells any time."""
WINDOW = 20
"""Frames on their way at once; beyond that only the newest are sent."""
PER_SECOND, AT_ONCE = 20.0, 5.0
"""How fast the past is told beside the present."""
RESEND_SECONDS = 30.0
"""A frame that was not taken for so long is sent again, over the same connection."""
MOST_TOLD = 4096
"""Layouts that the panel is trusted to remember; then all are told anew as they are used."""

_encoder = msgspec.msgpack.Encoder()
_readings: msgspec.msgpack.Decoder[list[tuple[int, Numbers]]] = msgspec.msgpack.Decoder(
    list[tuple[int, Numbers]]
)


@dataclass(slots=True)
class Kept:
    seq: int
    moment: float
    """On the agent's own count, see `PanelClock.local`."""
    layouts: tuple[Layout, ...]
    readings: bytes
    at: float | None = None
    """On the panel's clock; once told, it stays, so that sending it again changes nothing."""


class Outbox:
    """The newest frames leave at once; what the panel has missed follows beside them, oldest first
    and at a pace, so that "now" never waits for an hour of the past."""

    def __init__(
        self,
        clock: PanelClock,
        *,
        frames: int = KEPT_FRAMES,
        size: int = KEPT_BYTES,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock, self._steady = clock, steady
        self._most_frames, self._most_bytes = frames, size
        self._packer = Packer()
        self._seq = 0
        self._kept: dict[int, Kept] = {}
        self._bytes = 0
        self._unstamped: deque[Kept] = deque()
        self._fresh: deque[int] = deque()
        self._missed: deque[int] = deque()
        self._flying: dict[int, float] = {}
        """Number -> when it was sent over this connection, in that order."""
        self._told: set[int] = set()
        self._connected = self._counted = steady()
        self._allowance = AT_ONCE

    def __len__(self) -> int:
        """Frames that the panel has not taken yet."""
        return len(self._kept)

    def add(self, moment: float, samples: Sequence[Sample]) -> None:
        """`moment`: by `PanelClock.local`."""
        packed = self._packer.pack(samples)
        readings = _encoder.encode([(layout.number, numbers) for layout, numbers in packed])
        kept = Kept(self._seq, moment, tuple(layout for layout, _numbers in packed), readings)
        self._seq += 1
        self._kept[kept.seq] = kept
        self._bytes += len(readings)
        self._fresh.append(kept.seq)
        self._unstamped.append(kept)
        while len(self._kept) > self._most_frames or self._bytes > self._most_bytes:
            self._forget(next(iter(self._kept)))

    def connected(self) -> None:
        """A new connection knows no layout, and what was on its way may be lost."""
        self._told.clear()
        self._flying.clear()
        self._fresh.clear()
        self._missed = deque(self._kept)
        self._connected = self._counted = self._steady()
        self._allowance = AT_ONCE

    def taken(self, seqs: Sequence[int]) -> None:
        for seq in seqs:
            self._forget(seq)

    def outgoing(self) -> Iterator[Telemetry]:
        """What to send now."""
        if not self._stamp():
            return
        while self._fresh:
            yield from self._send(self._fresh.popleft())
        self._land()
        self._allow()
        while self._missed and self._allowance >= 1.0 and len(self._flying) < WINDOW:
            for message in self._send(self._missed.popleft()):
                self._allowance -= 1.0
                yield message

    def _stamp(self) -> bool:
        """False while the panel's clock is worth waiting for."""
        waited = self._steady() - self._connected
        if not self._clock.known and waited < CLOCK_SECONDS:
            return False
        while self._unstamped:
            kept = self._unstamped.popleft()
            if kept.seq in self._kept:
                kept.at = self._clock.stamp(kept.moment)
        return True

    def _send(self, seq: int) -> Iterator[Telemetry]:
        kept = self._kept.get(seq)
        if kept is None or kept.at is None or seq in self._flying:  # Given up, or taken meanwhile.
            return
        self._flying[seq] = self._steady()
        if len(self._told) > MOST_TOLD:
            self._told.clear()
        new = [layout for layout in kept.layouts if layout.number not in self._told]
        self._told.update(layout.number for layout in new)
        yield Telemetry(seq, kept.at, new, _readings.decode(kept.readings))

    def _land(self) -> None:
        """What has been on its way for too long counts as missed."""
        due = self._steady() - RESEND_SECONDS
        late = [seq for seq, sent in self._flying.items() if sent <= due]
        for seq in late:
            del self._flying[seq]
        self._missed.extend(late)

    def _allow(self) -> None:
        now = self._steady()
        self._allowance = min(AT_ONCE, self._allowance + (now - self._counted) * PER_SECOND)
        self._counted = now

    def _forget(self, seq: int) -> None:
        self._flying.pop(seq, None)
        kept = self._kept.pop(seq, None)
        if kept is not None:
            self._bytes -= len(kept.readings)
