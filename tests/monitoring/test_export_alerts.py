"""Prometheus reads which alerts fire; a rule that is quiet is 0, one that is off is not there."""

import pytest
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from monitoring.export.alerts import FiringAlerts
from monitoring.export.prometheus import render
from monitoring.models import Alert, Rule
from monitoring.models.alerts import AlertStatus, Severity

pytestmark = pytest.mark.django_db


def rule(name: str, *, enabled: bool = True) -> Rule:
    return Rule.objects.create(name=name, kind="metric", enabled=enabled, threshold=1.0, clear=0.5)


def alert(of: Rule, topic: str, status: AlertStatus, *, hushed: bool = False) -> None:
    Alert.objects.create(
        rule=of,
        rule_name=of.name,
        kind=of.kind,
        topic=topic,
        severity=Severity.WARNING,
        status=status,
        threshold=1.0,
        began=timezone.now(),
        seen=0.0,
        hushed=hushed,
    )


def told() -> dict[tuple[str, str], float]:
    families = text_string_to_metric_families(render(FiringAlerts()).decode())
    samples = [
        s for family in families if family.name == "tandem_alerts_firing" for s in family.samples
    ]
    return {(s.labels["rule"], s.labels["hushed"]): s.value for s in samples}


def test_firing_alerts_are_counted_by_rule() -> None:
    hot, quiet, _off = rule("Too hot"), rule("Too quiet"), rule("Switched off", enabled=False)
    alert(hot, "1/node", AlertStatus.FIRING)
    alert(hot, "2/node", AlertStatus.FIRING)
    alert(hot, "3/node", AlertStatus.FIRING, hushed=True)
    alert(quiet, "1/node", AlertStatus.PENDING)
    alert(quiet, "2/node", AlertStatus.RESOLVED)
    found = told()
    assert found["Too hot", "no"] == 2
    assert found["Too hot", "yes"] == 1
    assert found["Too quiet", "no"] == 0
    assert ("Switched off", "no") not in found
