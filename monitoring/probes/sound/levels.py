"""A level with its band, and where the band's width is from.

Meters: what IEC 61672-1:2002 lets a meter of its class be wrong by at 1 kHz, the lab's own
uncertainty included. A calibrated microphone: its calibrator's class, its drift since and its
place. The fan law: what the operator says, 5 dB unless he knows better. These last two are
judgement, not measured, and are marked so.
"""

from typing import Literal

from monitoring.metrics import NOISE, NOISE_BAND
from monitoring.samples import Kind, Sample, measured

METER_BANDS: dict[Literal["class 1", "class 2", "unknown"], tuple[float, Kind]] = {
    "class 1": (1.1, "declared"),
    "class 2": (1.4, "declared"),
    "unknown": (3.0, "estimated"),
}
MICROPHONE_BAND = 2.0


def heard(
    level: float, band: tuple[float, Kind], *, origin: str, position: str, kind: Kind
) -> list[Sample]:
    width, known = band
    return [
        measured(NOISE, level, source=origin, scope="room", label=position, kind=kind),
        measured(NOISE_BAND, width, source=origin, scope="room", label=position, kind=known),
    ]
