"""A sound level meter that writes lines on a serial port, or on a socket in its place."""

import re
import time
from typing import Any

import serial

from monitoring.noise import energetic_mean
from monitoring.probes.outside import SourceError
from monitoring.probes.sound.levels import METER_BANDS, heard
from monitoring.probes.sound.lines import level_in, weighting_in
from monitoring.samples import Sample, gettext_noop
from monitoring.sources import SERIAL_DEVICE, MeterSource

PERIOD_SECONDS = 1.0
SILENT_SECONDS = 3.0
LINE_SECONDS = 0.2
MOST_LINE = 200

NO_DEVICE = gettext_noop("The meter's device is not there.")
NOT_ALLOWED = gettext_noop("This agent may not open the meter's device.")
BAD_DEVICE = gettext_noop("The meter's device must be /dev/…, hid:… or socket://….")
CUT = gettext_noop("The meter's line was cut.")
SILENT = gettext_noop("The meter sent nothing for 3 s.")
NO_LEVEL = gettext_noop("The meter sends lines without a level in them.")
WEIGHTING = gettext_noop("The meter shows another weighting than A; set it to A.")


class SerialMeter:
    """Reads the lines of one second and gives their energetic mean."""

    period = PERIOD_SECONDS

    def __init__(self, source: MeterSource) -> None:
        self._source = source
        self._line: Any = None
        self._rest = b""

    def read(self) -> list[Sample]:
        try:
            level = self._level(self._line or self._open())
        except PermissionError as error:
            raise SourceError(NOT_ALLOWED) from error
        except (OSError, ValueError) as error:  # SerialException is an OSError.
            lost = CUT if self._line is not None else _why_closed(error)
            self.close()
            raise SourceError(lost) from error
        source = self._source
        return heard(
            level,
            METER_BANDS[source.grade],
            origin=source.origin,
            position=source.position,
            kind="measured",
        )

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _open(self) -> Any:
        if not SERIAL_DEVICE.fullmatch(self._source.device):
            raise SourceError(BAD_DEVICE)
        self._line = serial.serial_for_url(
            self._source.device, baudrate=self._source.baud, timeout=LINE_SECONDS
        )
        self._rest = b""
        return self._line

    def _level(self, line: Any) -> float:
        """Of what came within a period; waits longer only while nothing has come."""
        began = time.monotonic()
        levels: list[float] = []
        spoke = False
        while (waited := time.monotonic() - began) < SILENT_SECONDS:
            if levels and waited >= PERIOD_SECONDS:
                return energetic_mean(levels)
            for text in self._lines(line):
                spoke = True
                if weighting_in(text) not in ("", "A"):
                    raise SourceError(WEIGHTING)
                level = level_in(text)
                levels += [] if level is None else [level]
        raise SourceError(NO_LEVEL if spoke else SILENT)

    def _lines(self, line: Any) -> list[str]:
        """Those that are whole; the last one's beginning waits for its end."""
        came = line.read(max(1, min(MOST_LINE, line.in_waiting)))
        *whole, self._rest = re.split(rb"[\r\n]+", self._rest + came)
        self._rest = self._rest[-MOST_LINE:]
        return [text for raw in whole if (text := raw.decode("ascii", "replace").strip())]


def _why_closed(error: Exception) -> str:
    cause = error.__cause__ or error.__context__ or error
    number = getattr(error, "errno", None) or getattr(cause, "errno", None)
    return NOT_ALLOWED if number == 13 else NO_DEVICE
