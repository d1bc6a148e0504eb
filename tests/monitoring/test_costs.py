"""What running costs, when the boxes have paid for themselves, and what to enter for that."""

from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from monitoring.accounts.costs import (
    ENTER_CLOUD,
    ENTER_PURCHASE,
    ENTER_TARIFF,
    NEVER,
    NO_METER,
    NO_TOKENS,
    TOO_FAR,
    Cloud,
    Outlay,
    Use,
    electricity,
    payback,
    per_million,
)
from monitoring.accounts.energy import Used
from monitoring.accounts.tariffs import Priced, Rate, Tariff
from monitoring.accounts.weekly import Weekly

START = datetime(2026, 11, 27, tzinfo=UTC).timestamp()
FLAT = Tariff((Rate(Decimal("0.25"), Weekly(), date(2020, 1, 1)),), ZoneInfo("UTC"))
BOXES = Outlay("two boxes", Decimal(8000), date(2026, 1, 1))
CLOUD = Cloud(Decimal(1), Decimal(4))
USE = Use(Decimal(10), 40e6, 20e6, Priced(Decimal(24), Decimal(6)), Decimal(10))
"""In ten days 40 million tokens read and 20 million written, for 24 kWh."""


def test_each_bucket_of_each_box_has_its_price() -> None:
    hour = 3600.0
    boxes = {
        (1, START): Used(7.2e6, hour, "wall", "measured"),
        (2, START): Used(3.6e6, hour, "wall", "measured"),
        (1, START + hour): Used(3.6e6, hour, "wall", "measured"),
    }
    found = electricity(boxes, hour, FLAT)
    assert found[1, START] == Priced(Decimal(2), Decimal("0.50"))
    assert sum((p.amount for p in found.values()), Decimal(0)) == Decimal("1.00")
    assert electricity({}, hour, FLAT) == {}


def test_the_cloud_takes_its_price_for_tokens_read_and_written() -> None:
    assert CLOUD.price(2e6, 0.5e6) == Decimal(4)


def test_a_million_tokens_cost_their_share_and_none_have_no_price() -> None:
    assert per_million(Decimal(3), 1.5e6) == Decimal(2)
    assert per_million(Decimal(3), 0) is None


def test_the_boxes_are_paid_back_by_what_the_cloud_would_have_taken() -> None:
    """A day: cloud 4 + 8 = 12, electricity 0.60, no upkeep: 11.40 saved, 8000 in 702 days."""
    found = payback([BOXES], CLOUD, USE, tariff_known=True)
    assert found.cloud_a_day == Decimal(12)
    assert found.electricity_a_day == Decimal("0.6")
    assert found.saved_a_day == Decimal("11.4")
    assert found.on == date(2027, 12, 4)
    assert not found.reason
    assert not found.missing


def test_upkeep_takes_its_part_and_may_eat_up_the_saving() -> None:
    rent = Outlay("cabinet", Decimal("304.375"), date(2026, 1, 1), "month")
    insurance = Outlay("insurance", Decimal("365.25"), date(2026, 1, 1), "year")
    assert rent.a_day == Decimal(10)
    assert insurance.a_day == Decimal(1)
    found = payback([BOXES, rent], CLOUD, USE, tariff_known=True)
    assert found.saved_a_day == Decimal("1.4")
    found = payback([BOXES, rent, insurance, insurance], CLOUD, USE, tariff_known=True)
    assert (found.on, found.reason) == (None, NEVER)


def test_electricity_of_a_day_is_made_from_the_days_that_are_known() -> None:
    half = Use(Decimal(10), 40e6, 20e6, Priced(Decimal(12), Decimal(3)), Decimal(5))
    assert payback([BOXES], CLOUD, half, tariff_known=True).electricity_a_day == Decimal("0.6")


def test_what_was_not_entered_is_asked_for() -> None:
    found = payback([], None, USE, tariff_known=False)
    assert found.missing == (ENTER_PURCHASE, ENTER_CLOUD, ENTER_TARIFF)
    assert (found.on, found.saved_a_day, found.purchases, found.cloud_a_day) == (None,) * 4


def test_boxes_that_tell_no_energy_leave_it_unknown() -> None:
    blind = Use(Decimal(10), 40e6, 20e6, None, Decimal(0))
    found = payback([BOXES], CLOUD, blind, tariff_known=True)
    assert found.missing == (NO_METER,)
    assert found.electricity_a_day is None
    gap = Use(Decimal(10), 1, 1, Priced(Decimal(2), Decimal(1), Decimal(1)), Decimal(10))
    assert payback([BOXES], CLOUD, gap, tariff_known=True).electricity_a_day is None


def test_without_tokens_there_is_no_date() -> None:
    idle = Use(Decimal(10), 0, 0, USE.electricity, Decimal(10))
    assert payback([BOXES], CLOUD, idle, tariff_known=True).reason == NO_TOKENS


def test_a_saving_of_next_to_nothing_has_no_date() -> None:
    dear = Outlay("palace", Decimal(10**8), date(2026, 1, 1))
    assert payback([dear], CLOUD, USE, tariff_known=True).reason == TOO_FAR


def test_a_later_purchase_is_not_paid_back_before_it_was_made() -> None:
    small = Outlay("box", Decimal(100), date(2026, 1, 1))
    late = Outlay("fan", Decimal(1), date(2026, 6, 1))
    assert payback([small, late], CLOUD, USE, tariff_known=True).on == date(2026, 6, 1)
