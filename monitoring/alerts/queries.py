"""What fires, for pages."""

from collections import Counter

from django.db.models import QuerySet

from monitoring.models import Alert, AlertStatus
from monitoring.models.alerts import GRAVEST_FIRST
from monitoring.scopes import ScopeName


def firing_total(among: QuerySet[Alert] | None = None) -> dict[str, int]:
    """Severity -> how many fire and are not silenced."""
    rows = Alert.objects.all() if among is None else among
    firing = rows.filter(status=AlertStatus.FIRING, hushed=False)
    return dict(Counter(firing.values_list("severity", flat=True)))


def firing(scope: ScopeName = "fleet", pk: int | None = None) -> QuerySet[Alert]:
    """The gravest and newest first, what is silenced last."""
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
