"""What energy costs, by hand: over midnight, when the clocks change, with and without VAT."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from monitoring.accounts.tariffs import Priced, Prices, Rate, Tariff, Vat, kwh
from monitoring.accounts.weekly import EVERY_DAY, Weekly

BERLIN = ZoneInfo("Europe/Berlin")
LONG_AGO = date(2020, 1, 1)
DAY = Rate(Decimal("0.30"), Weekly(), LONG_AGO, "day")
NIGHT = Rate(Decimal("0.10"), Weekly(EVERY_DAY, time(22), time(6)), LONG_AGO, "night")
WORKDAYS = Rate(Decimal("0.40"), Weekly(frozenset(range(5)), time(8), time(18)), LONG_AGO, "peak")
TARIFF = Tariff((DAY, NIGHT, WORKDAYS), BERLIN)


def cost(tariff: Tariff, begin: datetime, end: datetime, energy: str) -> Priced:
    laid_out = Prices(tariff, begin.timestamp(), end.timestamp())
    return laid_out.cost(begin.timestamp(), end.timestamp(), Decimal(energy))


def berlin(day: int, hour: int, *, month: int = 11) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=BERLIN)


def test_three_and_a_half_million_joules_are_a_kilowatt_hour() -> None:
    assert kwh(3_600_000.0) == 1
    assert kwh(1.8e6) == Decimal("0.5")


def test_of_several_lines_the_shorter_one_counts() -> None:
    names = {
        berlin(27, 12): "peak",  # A Friday.
        berlin(28, 12): "day",
        berlin(27, 23): "night",
        berlin(28, 5): "night",
        berlin(28, 6): "day",
        berlin(27, 18): "day",
    }
    for at, name in names.items():
        rate = TARIFF.rate_at(at)
        assert rate is not None
        assert rate.name == name


def test_an_evening_that_runs_into_the_night_rate_costs_both() -> None:
    """21:00 to 1:00, 4 kWh evenly: one hour at 0.30, three at 0.10."""
    priced = cost(TARIFF, berlin(28, 21), berlin(29, 1), "4")
    assert priced == Priced(Decimal(4), Decimal("0.60"), Decimal(0))


def test_the_night_of_the_change_to_winter_time_has_an_hour_more() -> None:
    """22:00 to 6:00 are nine hours on the 25th of October 2026: 9 kWh, all at 0.10."""
    begin, end = berlin(24, 22, month=10), berlin(25, 6, month=10)
    assert end.astimezone(UTC) - begin.astimezone(UTC) == timedelta(hours=9)
    assert cost(TARIFF, begin, end, "9").amount == Decimal("0.90")


def test_the_hour_that_comes_twice_is_charged_twice() -> None:
    """From 2:00 to 3:00 at 0.50, else 0.30: 1:00 to 4:00 are four hours that night."""
    dear = Rate(Decimal("0.50"), Weekly(EVERY_DAY, time(2), time(3)), LONG_AGO)
    tariff = Tariff((DAY, dear), BERLIN)
    priced = cost(tariff, berlin(25, 1, month=10), berlin(25, 4, month=10), "4")
    assert priced.amount == Decimal("1.60")


def test_the_hour_that_summer_time_leaps_over_is_not_charged() -> None:
    """1:00 to 4:00 are two hours on the 29th of March 2026."""
    dear = Rate(Decimal("0.50"), Weekly(EVERY_DAY, time(2), time(3)), LONG_AGO)
    tariff = Tariff((DAY, dear), BERLIN)
    priced = cost(tariff, berlin(29, 1, month=3), berlin(29, 4, month=3), "2")
    assert priced.amount == Decimal("0.60")


def test_a_new_price_leaves_the_past_alone() -> None:
    dearer = Rate(Decimal("0.60"), Weekly(), date(2026, 11, 28))
    tariff = Tariff((DAY, dearer), BERLIN)
    priced = cost(tariff, berlin(27, 23), berlin(28, 1), "2")
    assert priced.amount == Decimal("0.90")


def test_energy_without_a_price_is_said_and_not_free() -> None:
    tariff = Tariff((NIGHT,), BERLIN)
    priced = cost(tariff, berlin(28, 20), berlin(29, 0), "4")
    assert priced == Priced(Decimal(4), Decimal("0.20"), Decimal(2))
    assert Tariff((), BERLIN).rate_at(berlin(28, 20)) is None
    assert Tariff((DAY,), BERLIN).rate_at(datetime(2019, 1, 1, tzinfo=UTC)) is None


def test_vat_is_put_on_taken_off_or_left() -> None:
    nineteen = Decimal(19)
    assert Vat(nineteen, entered=False, shown=True).factor == Decimal("1.19")
    assert Vat(nineteen, entered=True, shown=False).factor * Decimal("1.19") == 1
    assert Vat(nineteen).factor == Vat(nineteen, entered=False, shown=False).factor == 1
    net = Tariff((DAY,), BERLIN, Vat(nineteen, entered=False, shown=True))
    assert net.price_at(berlin(28, 12)) == Decimal("0.3570")


MINUTES = st.integers(0, 1439).map(lambda minute: time(minute // 60, minute % 60))
RATES = st.builds(
    Rate,
    st.decimals("0.01", "1", places=3),
    st.builds(Weekly, st.frozensets(st.integers(0, 6), min_size=1), MINUTES, MINUTES),
    st.dates(date(2026, 10, 1), date(2026, 11, 30)),
)


@settings(max_examples=60)
@given(
    st.lists(RATES, max_size=4),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"]),
    st.integers(1_792_800_000, 1_795_000_000),
    st.integers(1, 300),
)
def test_the_pieces_say_what_each_instant_says(
    rates: list[Rate], zone: str, begin: int, minutes: int
) -> None:
    """Priced minute by minute: the clock of these zones moves in whole minutes only."""
    tariff = Tariff(tuple(rates), ZoneInfo(zone))
    begin -= begin % 60
    total = Priced()
    for minute in range(minutes):
        price = tariff.price_at(datetime.fromtimestamp(begin + 60 * minute, UTC))
        part = Decimal(1) / 60
        total += Priced(part, ZERO if price is None else part * price, ZERO if price else part)
    laid_out = Prices(tariff, begin, begin + 60 * minutes)
    whole = laid_out.cost(begin, begin + 60 * minutes, Decimal(minutes) / 60)
    tiny = Decimal("1e-20")
    assert abs(whole.amount - total.amount) < tiny
    assert abs(whole.unpriced - total.unpriced) < tiny


ZERO = Decimal(0)
