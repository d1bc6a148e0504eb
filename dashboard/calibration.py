"""What a sound level meter shows now, tied to what a microphone or the fans say now."""

from collections.abc import Sequence

import msgspec
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard.errors import TandemError
from dashboard.models import Node
from dashboard.sentences import Sentence
from dashboard.source_state import Read, newest
from monitoring.metrics import FAN_SPEED, MICROPHONE_LEVEL
from monitoring.noise import effective_rpm, without_background
from monitoring.sources import FanLawSource, MicrophoneSource

CALIBRATED = ("microphone", "fan-law")

NOTHING = _("%(node)s has told nothing for some seconds; calibrate while its agent is connected.")
NO_LEVEL = _("The microphone gives no level now: %(reason)s")
NO_SPEED = _("No fan of %(node)s tells its speed now, and the estimate needs it.")
BACKGROUND = _(
    "With the box off it is less than 3 dB quieter: what is heard there is the room. "
    "Measure nearer."
)
STILL = _("The fans of %(node)s stand still; calibrate while they turn.")


class CalibrationError(TandemError):
    """There is nothing now that the meter's reading could be compared with."""


def calibrated(
    source: MicrophoneSource | FanLawSource,
    node: Node,
    level: float,
    background: float | None = None,
) -> MicrophoneSource | FanLawSource:
    """The source as it is from now on. Raises CalibrationError.

    `background` is what the meter shows with the box off; a microphone hears it too, so that it
    matters for fans alone.
    """
    read = newest(node)
    if not read:
        raise CalibrationError(Sentence(NOTHING, node=node.name))
    today = timezone.localdate().isoformat()
    if isinstance(source, MicrophoneSource):
        offset = level - _full_scale(source, read)
        return msgspec.structs.replace(source, offset_db=round(offset, 2), calibrated=today)
    alone = level if background is None else without_background(level, background)
    if alone is None:
        raise CalibrationError(Sentence(BACKGROUND))
    rpm = _rpm(source, node, read)
    return msgspec.structs.replace(
        source, level_dba=round(alone, 1), rpm=round(rpm, 1), calibrated=today
    )


def _full_scale(source: MicrophoneSource, read: Sequence[Read]) -> float:
    """The level as the microphone alone knows it."""
    for described, number in read:
        if described[0] == MICROPHONE_LEVEL.name and described[6] == source.name:
            if number is not None:
                return number
            raise CalibrationError(Sentence(NO_LEVEL, reason=Sentence(described[5])))
    raise CalibrationError(
        Sentence(NO_LEVEL, reason=Sentence(_("Its first reading is on its way.")))
    )


def _rpm(source: FanLawSource, node: Node, read: Sequence[Read]) -> float:
    """The speed that stands for all fans; where they are not told apart, the fastest one's."""
    fans = [(f[6], v) for f, v in read if f[0] == FAN_SPEED.name and v is not None]
    speeds = [speed for label, speed in fans if label] or [speed for _label, speed in fans]
    if not speeds:
        raise CalibrationError(Sentence(NO_SPEED, node=node.name))
    rpm = effective_rpm(speeds, source.exponent)
    if rpm <= 0:
        raise CalibrationError(Sentence(STILL, node=node.name))
    return rpm
