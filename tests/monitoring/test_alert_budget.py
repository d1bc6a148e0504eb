"""What a rule about the cost of energy sees."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import msgspec
import pytest

from monitoring import metrics as m
from monitoring.alerts.kinds import fleet as fleet_kinds
from monitoring.models import TariffRate
from monitoring.storage.series import Gain
from tests.dashboard.pages_cast import HARDWARE
from tests.monitoring.alert_cast import online
from tests.monitoring.alert_kinds_cast import deployment, one

__all__ = ["deployment"]

pytestmark = pytest.mark.django_db


def test_a_budget_is_what_this_months_energy_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    node = online()
    used = [Gain(f"{node.pk}/node", m.ENERGY.name, "wall", "", "measured", 0.0, 3.6e7, 3600.0)]
    monkeypatch.setattr("monitoring.alerts.spending.gains", lambda *_: used)
    assert one("budget", price=Decimal("0.25")).value == pytest.approx(2.5)


def test_a_budget_goes_by_the_tariff_where_one_is_entered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = online()
    day = date(2026, 1, 1)
    TariffRate.objects.create(since=day, begins=time(0), ends=time(0), price=Decimal("0.5"))
    at = datetime(2026, 11, 3, tzinfo=UTC).timestamp()
    used = [Gain(f"{node.pk}/node", m.ENERGY.name, "wall", "", "measured", at, 3.6e7, 3600.0)]
    monkeypatch.setattr("monitoring.alerts.spending.gains", lambda *_: used)
    assert one("budget", price=Decimal("0.25")).value == pytest.approx(5.0)


def test_a_budget_without_a_price_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    online()
    monkeypatch.setattr("monitoring.alerts.spending.gains", lambda *_: [])
    seen = one("budget")
    assert (seen.value, seen.reason) == (None, fleet_kinds.NO_COST)


def test_made_up_energy_costs_nobody_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    node = online()
    node.inventory = msgspec.to_builtins(msgspec.structs.replace(HARDWARE, simulated=True))
    node.save()
    used = [Gain(f"{node.pk}/node", m.ENERGY.name, "wall", "", "measured", 0.0, 3.6e7, 3600.0)]
    monkeypatch.setattr(
        "monitoring.alerts.spending.gains", lambda subjects, *_: used if subjects else []
    )
    assert one("budget", price=Decimal("0.25")).value is None
