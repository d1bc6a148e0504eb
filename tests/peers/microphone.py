"""Stands in for the `sounddevice` module: a microphone that hears what a test gives it."""

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray


class PortAudioError(Exception):
    """As the library's: not an OSError."""


class FakeSound(ModuleType):
    """`blocks` are heard one a second; without any, the device fails."""

    PortAudioError = PortAudioError

    def __init__(self) -> None:
        super().__init__("sounddevice")
        self.blocks: list[NDArray[np.float32]] = []
        self.opened: list[dict[str, Any]] = []
        self.missing = False
        self.closed = 0

    def InputStream(self, **wishes: Any) -> "FakeStream":
        if self.missing:
            raise PortAudioError("no such device")
        self.opened.append(wishes)
        return FakeStream(self)


class FakeStream:
    def __init__(self, sound: FakeSound) -> None:
        self._sound = sound

    def start(self) -> None: ...

    def read(self, frames: int) -> tuple[NDArray[np.float32], bool]:
        if not self._sound.blocks:
            raise PortAudioError("unplugged")
        block = self._sound.blocks.pop(0)
        return block[:frames].reshape(-1, 1), False

    def close(self) -> None:
        self._sound.closed += 1
