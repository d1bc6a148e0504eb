"""A microphone: one level a second. The sound itself is forgotten as soon as it is weighed."""

import math
from typing import Any

from monitoring.metrics import MICROPHONE_LEVEL, NOISE, NOISE_BAND
from monitoring.noise import level_dbfs
from monitoring.probes.outside import SourceError
from monitoring.probes.sound.levels import MICROPHONE_BAND, heard
from monitoring.samples import Sample, gettext_noop, measured, unavailable
from monitoring.sources import MicrophoneSource

RATE = 48_000
PERIOD_SECONDS = 1.0
FULL = 0.999
MOST_CLIPPED = 16
"""Samples of a second that may touch full scale by chance."""

NO_LIBRARY = gettext_noop("The PortAudio library is missing on this node; install libportaudio2.")
NO_DEVICE = gettext_noop("The microphone cannot be opened on this node.")
NO_SOUND = gettext_noop("The microphone gives digital silence; it may be muted.")
TOO_LOUD = gettext_noop("The sound is louder than the microphone can take.")
NOT_CALIBRATED = gettext_noop(
    "The microphone has not been calibrated: enter what a sound level meter shows beside it."
)


class Microphone:
    period = PERIOD_SECONDS

    def __init__(self, source: MicrophoneSource) -> None:
        self._source = source
        self._stream: Any = None

    def read(self) -> list[Sample]:
        level = self._level(self._stream or self._open())
        raw = measured(
            MICROPHONE_LEVEL,
            level,
            source=self._source.origin,
            scope="room",
            label=self._source.name,
        )
        return [*self._noise(level), raw]

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _open(self) -> Any:
        try:
            import sounddevice
        except (ImportError, OSError) as error:  # OSError: the wheel is there, PortAudio is not.
            raise SourceError(NO_LIBRARY) from error
        try:
            stream = sounddevice.InputStream(
                samplerate=RATE,
                channels=1,
                dtype="float32",
                device=self._source.device or None,
            )
            stream.start()
        except (sounddevice.PortAudioError, ValueError) as error:
            raise SourceError(NO_DEVICE) from error
        self._stream = stream
        return stream

    def _level(self, stream: Any) -> float:
        import sounddevice

        try:
            block, _overflowed = stream.read(RATE)
        except sounddevice.PortAudioError as error:
            self.close()
            raise SourceError(NO_DEVICE) from error
        sound = block[:, 0].astype("float64")
        if int((abs(sound) >= FULL).sum()) > MOST_CLIPPED:
            raise SourceError(TOO_LOUD)
        level = level_dbfs(sound, RATE)
        if math.isinf(level):
            raise SourceError(NO_SOUND)
        return level

    def _noise(self, level: float) -> list[Sample]:
        source = self._source
        if source.offset_db is None:
            return [
                unavailable(
                    metric,
                    NOT_CALIBRATED,
                    source=source.origin,
                    scope="room",
                    label=source.position,
                )
                for metric in (NOISE, NOISE_BAND)
            ]
        return heard(
            level + source.offset_db,
            (MICROPHONE_BAND, "estimated"),
            origin=source.origin,
            position=source.position,
            kind="calibrated",
        )
