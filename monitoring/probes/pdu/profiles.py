"""Where a PDU keeps watts and joules. Pure.

APC: PowerNet-MIB, rPDU2. Raritan: PDU2-MIB, of the first PDU of a chain; its numbers have decimal
digits that it tells in a column of its own.
"""

import math
from dataclasses import dataclass

from monitoring.samples import gettext_noop
from monitoring.sources import PduSource

TENTHS_OF_KWH = 0.1 * 3.6e6
WATT_HOURS = 3600.0
UNSUPPORTED = -1
MOST_DIGITS = 6

NOT_METERED = gettext_noop("The PDU does not meter this outlet.")
UNKNOWN_OUTLET = gettext_noop("The PDU does not know this outlet, or not this way of asking.")
ONE_SILENT = gettext_noop(
    "One of the outlets gives no reading, and a sum without it would be too low."
)
NOT_ASKED = gettext_noop("No object identifier was given for it.")


@dataclass(frozen=True)
class Counted:
    """One number of one outlet: where it is, what one unit is, where its decimal digits are."""

    oid: str
    factor: float
    digits_oid: str = ""


@dataclass(frozen=True)
class Wanted:
    power: tuple[Counted, ...]
    energy: tuple[Counted, ...]

    @property
    def oids(self) -> list[str]:
        every = (*self.power, *self.energy)
        return list(dict.fromkeys(oid for one in every for oid in (one.oid, one.digits_oid) if oid))


def wanted(source: PduSource) -> Wanted:
    """What to ask; without outlets, that of the whole PDU."""
    match source.profile:
        case "apc":
            return _apc(source.outlets)
        case "raritan":
            return _raritan(source.outlets)
    places = source.outlets or (1,)
    return Wanted(
        power=_custom(source.power_oid, source.power_factor, places),
        energy=_custom(source.energy_oid, source.energy_factor, places),
    )


def _apc(outlets: tuple[int, ...]) -> Wanted:
    tree = "1.3.6.1.4.1.318.1.1.26"
    if not outlets:  # The device's power is in hundredths of kilowatts, an outlet's in watts.
        device = f"{tree}.4.3.1"
        return Wanted(
            power=(Counted(f"{device}.5.1", 10.0),),
            energy=(Counted(f"{device}.9.1", TENTHS_OF_KWH),),
        )
    outlet = f"{tree}.9.4.3.1"
    return Wanted(
        power=tuple(Counted(f"{outlet}.7.{n}", 1.0) for n in outlets),
        energy=tuple(Counted(f"{outlet}.11.{n}", TENTHS_OF_KWH) for n in outlets),
    )


def _raritan(outlets: tuple[int, ...]) -> Wanted:
    tree, active_power, active_energy = "1.3.6.1.4.1.13742.6", 5, 8
    value, digits = ("5.4.3.1.4", "3.5.4.1.7") if outlets else ("5.2.3.1.4", "3.3.4.1.7")

    def counted(place: int, sensor: int, factor: float) -> Counted:
        index = f"1.{place}.{sensor}"
        return Counted(f"{tree}.{value}.{index}", factor, f"{tree}.{digits}.{index}")

    places = outlets or (1,)  # Without outlets, the inlet.
    return Wanted(
        power=tuple(counted(n, active_power, 1.0) for n in places),
        energy=tuple(counted(n, active_energy, WATT_HOURS) for n in places),
    )


def _custom(oid: str, factor: float, places: tuple[int, ...]) -> tuple[Counted, ...]:
    """One number for all outlets if the identifier has no place for an outlet."""
    asked = dict.fromkeys(oid.replace("{outlet}", str(n)) for n in places) if oid else {}
    return tuple(Counted(one.lstrip("."), factor) for one in asked)


def total(counted: tuple[Counted, ...], answers: dict[str, int | None]) -> float | str:
    """The sum in base units, or the reason why there is none."""
    found = amounts(counted, answers)
    return found if isinstance(found, str) else sum(found.values())


def amounts(counted: tuple[Counted, ...], answers: dict[str, int | None]) -> dict[str, float] | str:
    """Each in base units, by its identifier; or the reason why there is no sum of them."""
    if not counted:
        return NOT_ASKED
    found = {one.oid: _amount(one, answers) for one in counted}
    reasons = [amount for amount in found.values() if isinstance(amount, str)]
    if reasons:
        return ONE_SILENT if len(reasons) < len(found) else reasons[0]
    return {oid: amount for oid, amount in found.items() if not isinstance(amount, str)}


def _amount(one: Counted, answers: dict[str, int | None]) -> float | str:
    value = answers.get(one.oid)
    if value is None:
        return UNKNOWN_OUTLET
    if value <= UNSUPPORTED:
        return NOT_METERED
    digits = answers.get(one.digits_oid) if one.digits_oid else 0
    if digits is None or not 0 <= digits <= MOST_DIGITS:  # Then nobody knows what the number is.
        return UNKNOWN_OUTLET
    return value * one.factor / math.pow(10, digits)
