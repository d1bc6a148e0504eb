"""How loud a box probably is, from how fast its fans turn. Pure."""

from collections.abc import Sequence

from monitoring.metrics import FAN_SPEED
from monitoring.noise import effective_rpm, fan_law
from monitoring.probes.outside import absent
from monitoring.probes.sound.levels import heard
from monitoring.samples import Sample, gettext_noop
from monitoring.sources import FanLawSource

NO_FAN = gettext_noop("This node tells no fan's speed, and the fan law needs it.")
STILL = gettext_noop("The fans stand still, and the fan law says nothing of what is heard then.")
NOT_CALIBRATED = gettext_noop(
    "The fan law has not been calibrated: enter what a sound level meter shows at the fans' speed "
    "now."
)


def fan_speeds(samples: Sequence[Sample]) -> list[float]:
    """Of each of the box's fans; where they are not told apart, of the fastest."""
    fans = [s for s in samples if s.metric == FAN_SPEED.name and s.subject == "node"]
    known = [s for s in fans if s.value is not None]
    single = [s.value for s in known if s.label and s.value is not None]
    return single or [s.value for s in known if s.value is not None]


def estimate(source: FanLawSource, samples: Sequence[Sample]) -> list[Sample]:
    if source.level_dba is None or not source.rpm:
        return absent(source, NOT_CALIBRATED)
    speeds = fan_speeds(samples)
    if not speeds:
        return absent(source, NO_FAN)
    rpm = effective_rpm(speeds, source.exponent)
    if rpm <= 0:
        return absent(source, STILL)
    return heard(
        fan_law(source.level_dba, source.rpm, rpm, source.exponent),
        (source.band_db, "declared"),
        origin=source.origin,
        position=source.position,
        kind="estimated",
    )
