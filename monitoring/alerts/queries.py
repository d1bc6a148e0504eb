"""What fires and what fired, for charts, exporters and pages."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from monitoring.models import Alert, AlertStatus, Severity
from monitoring.models.alerts import GRAVEST_FIRST
from monitoring.scopes import ScopeName

MOST = 500


@dataclass(frozen=True)
class AlertSpan:
    """`until` is None while it fires."""

    at: datetime
    until: datetime | None
    severity: Severity
    text: str
    """In the reader's language."""
    alert: int
    incident: int | None


def alerts_between(
    scope: ScopeName, pk: int | None, since: datetime, until: datetime
) -> list[AlertSpan]:
    """Those that fired within that time or went on into it, the oldest first."""
    found = _of(scope, pk).filter(fired__isnull=False, fired__lt=until)
    found = found.filter(Q(resolved=None) | Q(resolved__gt=since)).select_related(
        "node", "deployment"
    )
    return [_span(alert) for alert in reversed(found.order_by("-fired", "-pk")[:MOST])]


def firing_counts() -> dict[tuple[str, str], int]:
    """(key or name of the rule, severity) -> how many fire."""
    firing = Alert.objects.filter(status=AlertStatus.FIRING).select_related("rule")
    return dict(
        Counter(
            ((alert.rule and alert.rule.key) or alert.rule_name, str(alert.severity))
            for alert in firing
        )
    )


def firing_total() -> dict[str, int]:
    """Severity -> how many fire and are not silenced."""
    firing = Alert.objects.filter(status=AlertStatus.FIRING, hushed=False)
    return dict(Counter(firing.values_list("severity", flat=True)))


def firing(scope: ScopeName = "fleet", pk: int | None = None) -> QuerySet[Alert]:
    """The gravest and newest first."""
    found = _of(scope, pk).filter(status=AlertStatus.FIRING)
    return found.select_related("node", "deployment", "rule", "incident").order_by(
        "hushed", GRAVEST_FIRST, "-fired"
    )


def _of(scope: ScopeName, pk: int | None) -> QuerySet[Alert]:
    if scope == "node":
        return Alert.objects.filter(node=pk)
    if scope == "deployment":
        return Alert.objects.filter(deployment=pk)
    return Alert.objects.all()


def _span(alert: Alert) -> AlertSpan:
    assert alert.fired is not None
    return AlertSpan(
        alert.fired,
        alert.resolved,
        Severity(alert.severity),
        alert.text,
        alert.pk,
        alert.incident_id,
    )
