"""Sums of money, energy and sound: to a few digits with their unit; absent with the reason."""

from decimal import Decimal

from django import template
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from dashboard.templatetags.panel import absent

register = template.Library()

Number = Decimal | float | int

KIND_MARKS = {"estimated": "≈ ", "declared": "≈ "}


def plain(value: Number, least: int = 2, most: int = 6) -> str:
    """At least `least` decimals, and more where the value would be lost in them."""
    size, digits = abs(Decimal(str(value))), least
    while size and size * 10**digits < 10 and digits < most:
        digits += 1
    number = number_format(round(size, digits), digits, use_l10n=True)
    return f"{_minus(value, digits)}{number}"


def _minus(value: Number, digits: int) -> str:
    """Of what is shown: nothing where the value is rounded to none."""
    return "−" if round(Decimal(str(value)), digits) < 0 else ""


@register.simple_tag
def money(value: Number | None, currency: str, why: object = "") -> SafeString | str:
    if value is None:
        return absent(str(why))
    return format_html("{} <small>{}</small>", plain(value), currency)


@register.simple_tag
def quantity(
    value: Number | None, unit: str, digits: int = 1, why: object = "", kind: str = ""
) -> SafeString | str:
    if value is None:
        return absent(str(why))
    number = number_format(round(Decimal(str(abs(value))), digits), digits)
    sign = _minus(value, digits)
    mark = KIND_MARKS.get(kind, "")
    return format_html("{}{}{} <small>{}</small>", mark, sign, number, unit)


@register.simple_tag
def small_quantity(
    value: Number | None, unit: str, why: object = "", kind: str = ""
) -> SafeString | str:
    """Three digits, wherever the point is."""
    if value is None:
        return absent(str(why))
    size = abs(float(value))
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 or not size else 3
    return quantity(value, unit, digits, why, kind)


@register.simple_tag
def signed(value: Number | None, unit: str, digits: int = 1, why: object = "") -> SafeString | str:
    """With its sign, as a change is told."""
    if value is None:
        return absent(str(why))
    number = number_format(round(Decimal(str(abs(value))), digits), digits)
    sign = "−" if value < 0 else "+" if value > 0 else "±"
    return format_html("{}{} <small>{}</small>", sign, number, unit)


@register.simple_tag
def share(value: Number | None, why: object = "", *, signs: bool = False) -> SafeString | str:
    """`signs`: of a change, which says that it is one upwards."""
    if value is None:
        return absent(str(why))
    percent = number_format(abs(round(Decimal(str(value)) * 100)), 0)
    sign = "−" if value < 0 else "+" if signs and value > 0 else ""
    return _("%(percent)s%%") % {"percent": f"{sign}{percent}"}
