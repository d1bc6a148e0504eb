"""What running costs, and what the same tokens would have cost elsewhere. Decimal only. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

from monitoring.accounts.energy import Used
from monitoring.accounts.tariffs import ZERO, Priced, Prices, Tariff, kwh
from monitoring.samples import gettext_noop as _

MILLION = Decimal(1_000_000)
MONTH = Decimal("30.4375")
"""Days, on average."""
FAR = 100 * 365
"""Days; what takes longer is not worth a date."""

ENTER_PURCHASE = _("Enter what the boxes cost.")
ENTER_CLOUD = _("Enter the price of the service you compare with.")
ENTER_TARIFF = _("Enter what a kilowatt-hour costs.")
NO_METER = _("No box tells its energy in this time.")
NO_LINE = _("Some of it was drawn at times for which no line of the tariff holds.")
NO_TOKENS = _("No token was generated in this time.")
NEVER = _("Never at this use: running costs more than the other service would.")
TOO_FAR = _("In more than a hundred years at this use.")


def electricity(
    boxes: Mapping[tuple[int, float], Used], step: float, tariff: Tariff
) -> dict[tuple[int, float], Priced]:
    """What each bucket of each box cost; its energy counts as drawn evenly over the bucket."""
    if not boxes:
        return {}
    times = [at for _node, at in boxes]
    prices = Prices(tariff, min(times), max(times) + step)
    return {
        (node, at): prices.cost(at, at + step, kwh(one.joules)) for (node, at), one in boxes.items()
    }


def per_million(amount: Decimal, tokens: float) -> Decimal | None:
    return amount * MILLION / Decimal(str(tokens)) if tokens > 0 else None


@dataclass(frozen=True)
class Cloud:
    """What another service takes for a million tokens, as shown (with VAT or without)."""

    prompt: Decimal
    generated: Decimal
    name: str = ""

    def price(self, prompt: float, generated: float) -> Decimal:
        tokens = Decimal(str(prompt)) * self.prompt + Decimal(str(generated)) * self.generated
        return tokens / MILLION


@dataclass(frozen=True)
class Outlay:
    """Something bought once, or paid for every month."""

    name: str
    amount: Decimal
    since: date
    every: Literal["once", "month", "year"] = "once"

    @property
    def a_day(self) -> Decimal:
        """Of what is paid again and again."""
        days = {"month": MONTH, "year": 12 * MONTH}.get(self.every)
        return ZERO if days is None else self.amount / days


@dataclass(frozen=True)
class Use:
    """What was seen in a time, from which a day's figures are made."""

    days: Decimal
    """Of the window in which tokens were counted."""
    prompt: float
    generated: float
    electricity: Priced | None
    """None: no box tells its energy, or there is no tariff."""
    covered_days: Decimal
    """Of the window, the part for which the energy is known; a day's cost is made from it."""


@dataclass(frozen=True)
class Payback:
    """When the boxes have paid for themselves, with everything it was worked out from."""

    purchases: Decimal | None
    cloud_a_day: Decimal | None
    electricity_a_day: Decimal | None
    upkeep_a_day: Decimal
    saved_a_day: Decimal | None
    on: date | None
    reason: str = ""
    """Why there is no date."""
    missing: tuple[str, ...] = ()
    """What to enter, one sentence each."""


def payback(
    outlays: Sequence[Outlay], cloud: Cloud | None, use: Use, tariff_known: bool
) -> Payback:
    """At the use that was seen, counted from the first purchase."""
    bought = [one for one in outlays if one.every == "once"]
    upkeep = sum((one.a_day for one in outlays), ZERO)
    purchases = sum((one.amount for one in bought), ZERO) if bought else None
    elsewhere = cloud.price(use.prompt, use.generated) / use.days if cloud and use.days else None
    power = _a_day(use)
    missing = _missing(purchases, cloud, power, tariff_known)
    if missing or purchases is None or elsewhere is None or power is None:
        return Payback(purchases, elsewhere, power, upkeep, None, None, "", missing)
    saved = elsewhere - power - upkeep
    on, reason = _date(bought, purchases, saved)
    if use.generated <= 0:
        on, reason = None, NO_TOKENS
    return Payback(purchases, elsewhere, power, upkeep, saved, on, reason)


def _a_day(use: Use) -> Decimal | None:
    """None also where some of the energy has no price: the sum would be too small."""
    if use.electricity is None or not use.covered_days or use.electricity.unpriced > 0:
        return None
    return use.electricity.amount / use.covered_days


def _missing(
    purchases: Decimal | None, cloud: Cloud | None, power: Decimal | None, tariff_known: bool
) -> tuple[str, ...]:
    wanted = (
        (purchases is None, ENTER_PURCHASE),
        (cloud is None, ENTER_CLOUD),
        (not tariff_known, ENTER_TARIFF),
        (tariff_known and power is None, NO_METER),
    )
    return tuple(sentence for lacks, sentence in wanted if lacks)


def _date(bought: Sequence[Outlay], purchases: Decimal, saved: Decimal) -> tuple[date | None, str]:
    if saved <= 0:
        return None, NEVER
    days = purchases / saved
    if days > FAR:
        return None, TOO_FAR
    first = min(one.since for one in bought)
    last = max(one.since for one in bought)
    return max(first + timedelta(days=int(days.to_integral_value("ROUND_CEILING"))), last), ""
