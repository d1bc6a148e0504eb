"""A microphone: its level, its calibration, and that no sound is kept."""

import gc
import sys
import weakref

import numpy as np
import pytest
from numpy.typing import NDArray

from monitoring.probes.outside import SourceError
from monitoring.probes.sound.microphone import (
    NO_DEVICE,
    NO_LIBRARY,
    NO_SOUND,
    NOT_CALIBRATED,
    RATE,
    TOO_LOUD,
    Microphone,
)
from monitoring.sources import MicrophoneSource
from tests.peers.microphone import FakeSound


@pytest.fixture
def sound(monkeypatch: pytest.MonkeyPatch) -> FakeSound:
    fake = FakeSound()
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return fake


def tone(decibels: float, hertz: int = 1000) -> NDArray[np.float32]:
    """A second of a tone whose RMS is that far from full scale."""
    time = np.arange(RATE) / RATE
    wave = np.sqrt(2) * 10 ** (decibels / 20) * np.sin(2 * np.pi * hertz * time)
    return np.asarray(wave, dtype="float32")


def microphone(offset: float | None = 120.0) -> Microphone:
    return Microphone(MicrophoneSource(name="mic", offset_db=offset, position="desk"))


def refused(reader: Microphone) -> str:
    with pytest.raises(SourceError) as caught:
        reader.read()
    return caught.value.reason


def test_a_calibrated_microphone_tells_a_level_and_its_band(sound: FakeSound) -> None:
    sound.blocks = [tone(-80)]
    level, band, raw = microphone().read()
    assert level.value == pytest.approx(40.0, abs=0.02)
    assert (level.metric, level.kind, level.label) == ("noise_dba", "calibrated", "desk")
    assert (band.metric, band.value, band.kind) == ("noise_band_dba", 2.0, "estimated")
    assert (raw.metric, raw.label) == ("microphone_level_dbfs", "mic")
    assert raw.value == pytest.approx(-80.0, abs=0.02)


def test_low_tones_count_for_less(sound: FakeSound) -> None:
    sound.blocks = [tone(-60, 100)]
    assert microphone().read()[0].value == pytest.approx(60 - 19.14, abs=0.05)


def test_without_a_calibration_there_is_no_level_but_its_reason(sound: FakeSound) -> None:
    sound.blocks = [tone(-80)]
    level, band, raw = microphone(None).read()
    assert (level.value, level.reason) == (None, NOT_CALIBRATED)
    assert band.value is None
    assert raw.value is not None  # What a calibration needs.


def test_silence_and_overload_are_no_levels(sound: FakeSound) -> None:
    sound.blocks = [np.zeros(RATE, "float32"), tone(6)]
    reader = microphone()
    assert refused(reader) == NO_SOUND
    assert refused(reader) == TOO_LOUD


def test_an_unplugged_microphone_is_opened_again(sound: FakeSound) -> None:
    reader = microphone()
    assert refused(reader) == NO_DEVICE
    sound.missing = True
    assert refused(reader) == NO_DEVICE
    sound.missing = False
    sound.blocks = [tone(-80)]
    assert reader.read()[0].value is not None
    reader.close()
    assert sound.closed == 2


def test_the_sound_is_forgotten(sound: FakeSound) -> None:
    block = tone(-80)
    kept = weakref.ref(block)
    sound.blocks = [block]
    del block
    reader = microphone()
    reader.read()
    gc.collect()
    assert kept() is None


def test_a_node_without_portaudio_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    assert refused(microphone()) == NO_LIBRARY
