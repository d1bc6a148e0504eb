"""What a kilowatt-hour costs at an instant. Money is Decimal, never a float. Pure, no Django."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from zoneinfo import ZoneInfo

from monitoring.accounts.weekly import Weekly, edges

JOULES = Decimal(3_600_000)
"""In a kilowatt-hour."""
ZERO = Decimal(0)


def kwh(joules: float) -> Decimal:
    return Decimal(str(joules)) / JOULES


@dataclass(frozen=True)
class Rate:
    """One line of a tariff."""

    price: Decimal
    """Of a kilowatt-hour."""
    hours: Weekly
    since: date
    """The first day on which it holds, in the tariff's zone."""
    name: str = ""


@dataclass(frozen=True)
class Vat:
    """Prices are entered with it or without, and shown with it or without."""

    percent: Decimal = ZERO
    entered: bool = True
    shown: bool = True

    @property
    def factor(self) -> Decimal:
        """What an entered price is multiplied by to be shown."""
        gross = 1 + self.percent / 100
        if self.entered == self.shown:
            return Decimal(1)
        return gross if self.shown else 1 / gross


@dataclass(frozen=True)
class Priced:
    """What some energy cost, as far as there is a price for it."""

    kwh: Decimal = ZERO
    amount: Decimal = ZERO
    """Of the part that has a price."""
    unpriced: Decimal = ZERO
    """Kilowatt-hours for which no line of the tariff holds."""

    def __add__(self, other: "Priced") -> "Priced":
        return Priced(
            self.kwh + other.kwh, self.amount + other.amount, self.unpriced + other.unpriced
        )


@dataclass(frozen=True)
class Tariff:
    """Lines with the newest `since` that has come replace all older ones. Of several that hold at
    an instant the shorter counts: a whole-day line is the price for the rest of the day."""

    rates: tuple[Rate, ...]
    zone: ZoneInfo
    vat: Vat = Vat()

    @cached_property
    def _by_length(self) -> tuple[Rate, ...]:
        return tuple(sorted(self.rates, key=lambda rate: rate.hours.length))

    def rate_at(self, at: datetime) -> Rate | None:
        local = at.astimezone(self.zone)
        today = local.date()
        newest = max((rate.since for rate in self.rates if rate.since <= today), default=None)
        return next(
            (r for r in self._by_length if r.since == newest and r.hours.holds(local)), None
        )

    def price_at(self, at: datetime) -> Decimal | None:
        """As it is shown, with or without VAT."""
        rate = self.rate_at(at)
        return None if rate is None else rate.price * self.vat.factor

    def pieces(
        self, begin: datetime, end: datetime
    ) -> Iterator[tuple[datetime, datetime, Rate | None]]:
        """The time from `begin` to `end` in pieces of one rate each."""
        cuts = [begin, *edges([rate.hours for rate in self.rates], self.zone, begin, end), end]
        for start, stop in pairwise(cuts):
            yield start, stop, self.rate_at(start)


class Prices:
    """A tariff laid out over a time, for many questions about it. Times are Unix seconds."""

    def __init__(self, tariff: Tariff, begin: float, end: float) -> None:
        since, until = (datetime.fromtimestamp(at, UTC) for at in (begin, end))
        pieces = list(tariff.pieces(since, until))
        self._starts = [start.timestamp() for start, _stop, _rate in pieces]
        self._prices = [
            None if rate is None else rate.price * tariff.vat.factor for *_times, rate in pieces
        ]

    def cost(self, begin: float, end: float, energy: Decimal) -> Priced:
        """Of `energy` kilowatt-hours that were drawn evenly from `begin` to `end`."""
        priced, whole = Priced(energy), Decimal(str(end - begin))
        index = max(0, bisect_right(self._starts, begin) - 1)
        while begin < end:
            last = index + 1 >= len(self._starts)
            stop = end if last else min(end, self._starts[index + 1])
            part, price = energy * Decimal(str(stop - begin)) / whole, self._prices[index]
            priced += Priced(unpriced=part) if price is None else Priced(amount=part * price)
            begin, index = stop, index + 1
        return priced
