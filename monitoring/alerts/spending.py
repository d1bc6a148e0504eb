"""What energy has cost since a moment: at the tariff, or at one price where none is entered."""

from datetime import datetime, timedelta
from decimal import Decimal

from monitoring.accounts.costs import electricity
from monitoring.accounts.energy import Used, used_by_box
from monitoring.accounts.tariffs import kwh
from monitoring.alerts.fleet import simulated_nodes
from monitoring.metrics import ENERGY
from monitoring.models import PriceList
from monitoring.scopes import subjects
from monitoring.storage.series import gains

STEP = timedelta(hours=1)


def spent(since: datetime, until: datetime, price: Decimal | None) -> float | None:
    """Of all real boxes that tell their energy; None where none does, or nothing has a price."""
    tariff = PriceList.current().tariff
    if not tariff.rates and price is None:
        return None
    boxes = _boxes(since, until)
    if not boxes:
        return None
    if tariff.rates:
        priced = electricity(boxes, STEP.total_seconds(), tariff).values()
        return float(sum((one.amount for one in priced), Decimal(0)))
    assert price is not None
    return float(sum((kwh(used.joules) * price for used in boxes.values()), Decimal(0)))


def _boxes(since: datetime, until: datetime) -> dict[tuple[int, float], Used]:
    made_up = simulated_nodes()
    own = [
        one
        for one in subjects("everything")
        if one.role in ("node", "gpu") and one.node not in made_up
    ]
    if not own:
        return {}
    return used_by_box(gains(own, {ENERGY.name}, since, until, STEP))
