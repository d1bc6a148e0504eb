"""What energy has cost since a moment, at the tariff or at one price."""

from datetime import datetime, timedelta
from decimal import Decimal

from monitoring.energy import Used, used_by_box
from monitoring.metrics import ENERGY
from monitoring.scopes import subjects
from monitoring.series import gains
from monitoring.tariffs import kwh

STEP = timedelta(hours=1)


def spent(since: datetime, until: datetime, price: Decimal | None) -> float | None:
    """Of all boxes that tell their energy; None where none does, or nothing has a price."""
    if price is None:
        return None
    boxes = _boxes(since, until)
    if not boxes:
        return None
    return float(sum(kwh(used.joules) * price for used in boxes.values()))


def _boxes(since: datetime, until: datetime) -> dict[tuple[int, float], Used]:
    own = [one for one in subjects("everything") if one.role in ("node", "gpu")]
    return used_by_box(gains(own, {ENERGY.name}, since, until, STEP))
