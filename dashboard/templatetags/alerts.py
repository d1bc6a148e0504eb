"""What pages show of alerts: the strip of what fires here, and the number in the header."""

from django import template
from django.db.models import Q
from django.template import Context
from django.utils import timezone

from dashboard.access import seen
from dashboard.views.access import hidden_of
from monitoring.alerts.queries import firing, firing_total
from monitoring.alerts.wording import amount
from monitoring.models import Alert, Maintenance
from monitoring.scopes import NOTHING, Hidden, ScopeName

register = template.Library()

SHOWN = 5
"""Alerts in a strip; the page of alerts has them all."""


@register.inclusion_tag("monitor/_firing.html", takes_context=True)
def firing_strip(context: Context, scope: ScopeName, pk: int | None = None) -> dict[str, object]:
    """Of the `fleet`, a `node` or a `deployment`; with the maintenance that covers it now."""
    hidden = _hidden(context)
    found = list(seen(firing(scope, pk), hidden)[: SHOWN + 1])
    return {
        "alerts": found[:SHOWN],
        "more": len(found) > SHOWN,
        "works": _works(scope, pk, hidden),
        "scope": scope,
    }


@register.inclusion_tag("monitor/_alert_badge.html", takes_context=True)
def alert_badge(context: Context) -> dict[str, object]:
    counts = firing_total(seen(Alert.objects.all(), _hidden(context)))
    return {"total": sum(counts.values()), "critical": counts.get("critical", 0)}


@register.filter
def in_unit(value: float, unit: str) -> str:
    return amount(value, unit)


def _hidden(context: Context) -> Hidden:
    request = context.get("request")
    return hidden_of(request) if request is not None else NOTHING


def _works(scope: ScopeName, pk: int | None, hidden: Hidden) -> list[Maintenance]:
    now = timezone.now()
    found = seen(Maintenance.objects.filter(starts__lte=now, until__gt=now), hidden)
    if scope == "node":
        found = found.filter(node=pk)
    elif scope == "deployment":
        found = found.filter(Q(deployment=pk))
    return list(found.select_related("node", "deployment"))
