"""Readings on their way to the panel: packed, numbered, kept until they are there."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.protocol.agent import Telemetry
from monitoring.packing import Layout, Numbers, Packer
from monitoring.samples import Sample

KEPT_FRAMES = 3600
"""What is kept while the panel is away: an hour at 1 Hz, the oldest given up first."""


@dataclass(frozen=True)
class Packed:
    seq: int
    at: float
    readings: list[tuple[Layout, Numbers]]


class Outbox:
    def __init__(self) -> None:
        self._packer = Packer()
        self._frames: deque[Packed] = deque(maxlen=KEPT_FRAMES)
        self._told: set[int] = set()
        self._seq = 0

    def add(self, at: float, samples: Sequence[Sample]) -> None:
        self._frames.append(Packed(self._seq, at, self._packer.pack(samples)))
        self._seq += 1

    def connected(self) -> None:
        """A new connection knows no layout."""
        self._told.clear()

    def outgoing(self) -> Iterator[Telemetry]:
        """What to send now; a frame counts as sent when the next one is asked for."""
        while self._frames:
            frame = self._frames[0]
            yield self._message(frame)
            if self._frames and self._frames[0] is frame:  # Else it was given up meanwhile.
                self._frames.popleft()

    def _message(self, frame: Packed) -> Telemetry:
        new = [layout for layout, _numbers in frame.readings if layout.number not in self._told]
        self._told.update(layout.number for layout in new)
        readings = [(layout.number, numbers) for layout, numbers in frame.readings]
        return Telemetry(seq=frame.seq, at=frame.at, layouts=new, readings=readings)
