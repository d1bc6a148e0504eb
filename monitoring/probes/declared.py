"""What the data sheet says, where nothing reads it."""

from monitoring.metrics import ENERGY, NOISE, NOISE_BAND, POWER
from monitoring.samples import Sample, gettext_noop, measured, unavailable
from monitoring.sources import DeclaredNoise, DeclaredPower

NO_ENERGY = gettext_noop("Declared watts do not say what was really used.")
NO_BAND = gettext_noop("The declared level comes without a band.")


def declared_noise(source: DeclaredNoise) -> list[Sample]:
    return [
        measured(
            NOISE,
            source.level_dba,
            source=source.origin,
            scope="room",
            label=source.position,
            kind="declared",
        ),
        unavailable(NOISE_BAND, NO_BAND, source=source.origin, scope="room", label=source.position),
    ]


def declared_power(source: DeclaredPower) -> list[Sample]:
    return [
        measured(POWER, source.watts, source=source.origin, scope="host", kind="declared"),
        unavailable(ENERGY, NO_ENERGY, source=source.origin, scope="host"),
    ]
