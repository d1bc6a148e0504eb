"""What fires, and the rules that every panel begins with."""

from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone

from dashboard.models import Node
from monitoring.alerts.builtin import BUILT_IN, edited, reset, seed
from monitoring.alerts.kinds import KINDS
from monitoring.alerts.queries import firing, firing_total
from monitoring.metrics import METRICS
from monitoring.models import Alert, Rule
from tests.monitoring.alert_cast import online

pytestmark = pytest.mark.django_db


def alert(node: Node, fired: datetime, **values: Any) -> Alert:
    rule = Rule.objects.get(key="clock")
    return Alert.objects.create(
        **{
            "rule": rule,
            "rule_name": rule.name,
            "kind": rule.kind,
            "topic": f"{node.pk}/node",
            "node": node,
            "severity": "warning",
            "status": "firing",
            "threshold": 2.0,
            "began": fired,
            "fired": fired,
            "seen": 0.0,
            **values,
        }
    )


def test_what_is_silenced_is_not_counted() -> None:
    node, other, now = online(), online("box-2"), timezone.now()
    alert(node, now)
    alert(other, now, topic=f"{other.pk}/node", hushed=True)
    assert firing_total() == {"warning": 1}
    assert [one.node for one in firing("node", other.pk)] == [other]


def test_the_gravest_comes_first_and_the_silenced_last() -> None:
    node, now = online(), timezone.now()
    for series, severity, hushed in (
        ("a", "note", False),
        ("b", "critical", True),
        ("c", "critical", False),
        ("d", "warning", False),
    ):
        alert(node, now, series=series, severity=severity, hushed=hushed)
    assert [one.series for one in firing()] == ["c", "d", "a", "b"]


def test_every_built_in_rule_watches_something_that_exists() -> None:
    for values in BUILT_IN:
        rule = Rule(**values)
        assert rule.kind in KINDS
        assert rule.metric == "" or rule.metric in METRICS
        assert rule.terms.over(rule.clear)
        assert not rule.terms.holds(rule.threshold)


def test_built_in_rules_that_somebody_changed_stay_so_until_they_are_put_back() -> None:
    rule = Rule.objects.get(key="noise")
    rule.threshold = 38.0
    rule.save()
    seed()
    rule.refresh_from_db()
    assert (rule.threshold, edited(rule)) == (38.0, True)
    reset(rule)
    assert not edited(Rule.objects.get(key="noise"))
    assert Rule.objects.filter(key="noise").count() == 1


def test_a_built_in_rule_that_was_lost_comes_back() -> None:
    Rule.objects.filter(key="noise").delete()
    seed()
    assert Rule.objects.filter(key="noise").exists()
