"""What pages show of alerts: the strip of what fires here, and the number in the header."""

from django import template
from django.db.models import Q
from django.utils import timezone

from monitoring.alerts.queries import firing, firing_total
from monitoring.alerts.wording import amount
from monitoring.models import Maintenance
from monitoring.scopes import ScopeName

register = template.Library()

SHOWN = 5
"""Alerts in a strip; the page of alerts has them all."""


@register.inclusion_tag("monitor/_firing.html")
def firing_strip(scope: ScopeName, pk: int | None = None) -> dict[str, object]:
    """Of the `fleet`, a `node` or a `deployment`; with the maintenance that covers it now."""
    found = list(firing(scope, pk)[: SHOWN + 1])
    return {
        "alerts": found[:SHOWN],
        "more": len(found) > SHOWN,
        "works": _works(scope, pk),
        "scope": scope,
    }


@register.inclusion_tag("monitor/_alert_badge.html")
def alert_badge() -> dict[str, object]:
    counts = firing_total()
    return {"total": sum(counts.values()), "critical": counts.get("critical", 0)}


@register.filter
def in_unit(value: float, unit: str) -> str:
    return amount(value, unit)


def _works(scope: ScopeName, pk: int | None) -> list[Maintenance]:
    now = timezone.now()
    found = Maintenance.objects.filter(starts__lte=now, until__gt=now)
    if scope == "node":
        found = found.filter(node=pk)
    elif scope == "deployment":
        found = found.filter(Q(deployment=pk))
    return list(found.select_related("node", "deployment"))
