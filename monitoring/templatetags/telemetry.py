"""Charts on a page."""

from dataclasses import dataclass
from typing import Any

from django import template
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from monitoring.charts.panels import panel
from monitoring.samples import Kind

register = template.Library()

BINARY = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
KINDS: dict[Kind, str | Promise] = {
    "measured": _("measured"),
    "calibrated": _("calibrated"),
    "estimated": _("estimated"),
    "derived": _("derived"),
    "declared": _("declared"),
    "unavailable": _("unavailable"),
}


@dataclass(frozen=True)
class Span:
    seconds: int
    label: str | Promise


@register.simple_tag
def telemetry_panel(name: str) -> dict[str, Any]:
    return panel(name)


@register.simple_tag
def telemetry_spans() -> list[Span]:
    """What a page can show of the last while; the same as `SPANS` in `static/charts/range.js`."""
    return [
        Span(300, _minutes(5)),
        Span(900, _minutes(15)),
        Span(3600, _hours(1)),
        Span(21_600, _hours(6)),
        Span(86_400, _hours(24)),
        Span(604_800, _days(7)),
        Span(2_592_000, _days(30)),
        Span(31_536_000, _("1 year")),
    ]


def _minutes(number: int) -> str:
    return ngettext("%(n)s min", "%(n)s min", number) % {"n": number}


def _hours(number: int) -> str:
    return ngettext("%(n)s h", "%(n)s h", number) % {"n": number}


def _days(number: int) -> str:
    return ngettext("%(n)s d", "%(n)s d", number) % {"n": number}


@register.filter
def binary(value: float) -> str:
    """Bytes to three digits, in the unit in which they are read best."""
    for scale, unit in BINARY:
        if value >= scale:
            digits = 0 if value >= 100 * scale else 1 if value >= 10 * scale else 2
            return f"{number_format(round(value / scale, digits), digits)} {unit}"
    return f"{number_format(round(value))} B"


@register.filter
def kind(name: Kind) -> str:
    return str(KINDS[name])


@register.filter
def translated(reason: str) -> str:
    """A reason that travelled as English, in the reader's language."""
    return gettext(reason) if reason else ""
