"""A sound level meter on USB that answers reports of the GM1356 kind."""

import secrets
import time
from typing import Any

from monitoring.noise import energetic_mean
from monitoring.probes.outside import SourceError
from monitoring.probes.sound.levels import METER_BANDS, heard
from monitoring.probes.sound.meter import BAD_DEVICE, NO_DEVICE, PERIOD_SECONDS, SILENT, WEIGHTING
from monitoring.samples import Sample, gettext_noop
from monitoring.sources import HID_DEVICE, MeterSource

ASK = 0xB3
REPORT_BYTES = 8
ANSWER_MILLISECONDS = 500
ASKS = 4
"""A second: the display changes twice in it."""
C_WEIGHTED = 0x10
"""A bit of the report's third byte."""

NO_LIBRARY = gettext_noop("The hidapi library cannot be loaded on this node.")
STRANGE = gettext_noop("The meter answers something that is no level.")


def level_of(report: bytes) -> float:
    """dB(A) in a report: tenths in the first two bytes, then flags. Raises SourceError."""
    if len(report) != REPORT_BYTES:
        raise SourceError(STRANGE)
    if report[2] & C_WEIGHTED:
        raise SourceError(WEIGHTING)
    level = int.from_bytes(report[:2], "big") / 10
    if not 10.0 <= level <= 160.0:
        raise SourceError(STRANGE)
    return level


class HidMeter:
    period = PERIOD_SECONDS

    def __init__(self, source: MeterSource) -> None:
        self._source = source
        self._device: Any = None

    def read(self) -> list[Sample]:
        device = self._device or self._open()
        try:
            levels = [self._ask(device) for _ in range(ASKS)]
        except (OSError, ValueError) as error:
            self.close()
            raise SourceError(NO_DEVICE) from error
        source = self._source
        return heard(
            energetic_mean(levels),
            METER_BANDS[source.grade],
            origin=source.origin,
            position=source.position,
            kind="measured",
        )

    def close(self) -> None:
        if self._device is not None:
            self._device.close()
            self._device = None

    def _open(self) -> Any:
        named = HID_DEVICE.fullmatch(self._source.device)
        if named is None:
            raise SourceError(BAD_DEVICE)
        try:
            import hid
        except ImportError as error:
            raise SourceError(NO_LIBRARY) from error
        device = hid.device()
        try:
            device.open(int(named[1], 16), int(named[2], 16))
        except OSError as error:
            raise SourceError(NO_DEVICE) from error
        self._device = device
        return device

    def _ask(self, device: Any) -> float:
        began = time.monotonic()
        # The first byte is the report's number; the next four say what is asked, with salt.
        device.write(bytes([0, ASK, *secrets.token_bytes(3), 0, 0, 0, 0]))
        answer = bytes(device.read(REPORT_BYTES, ANSWER_MILLISECONDS))
        if not answer:
            raise SourceError(SILENT)
        level = level_of(answer)
        time.sleep(max(0.0, PERIOD_SECONDS / ASKS - (time.monotonic() - began)))
        return level
