"""Rules about the fleet as a whole."""

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils.translation import gettext_noop as _

from monitoring.alerts.rules import Observation
from monitoring.alerts.spending import spent
from monitoring.alerts.world import Sighting, World
from monitoring.models import PriceList, Rule
from monitoring.storage.partitions import strays as stray_rows

NO_COST = _("No box tells its energy, or there is neither a tariff nor a price in the rule.")


def budget(rule: Rule, world: World) -> Iterator[Sighting]:
    prices = PriceList.current()
    began = month(world.now.astimezone(ZoneInfo(prices.zone)))

    def compute() -> float | None:
        return spent(began, world.now, rule.price)

    cost = world.usuals.remembered(f"budget:{rule.pk}:{began:%Y-%m}:{rule.price}", compute)
    yield Sighting("", prices.currency, Observation(cost, reason=NO_COST))


def strays(rule: Rule, world: World) -> Iterator[Sighting]:
    yield Sighting("", "rows", Observation(float(stray_rows())))


def month(now: datetime) -> datetime:
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
