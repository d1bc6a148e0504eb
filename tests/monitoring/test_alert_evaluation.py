"""From readings to alerts and incidents."""

import threading

import pytest
from django.db import connection, connections

from dashboard.models import Node
from monitoring.alerts.evaluate import LOCK, evaluate
from monitoring.models import Alert, Incident, Maintenance, Rule, Silence
from tests.monitoring.alert_cast import Clock, cpu, online, only_rule, tell, the_alert

pytestmark = pytest.mark.django_db


def test_a_value_that_stays_too_high_becomes_an_alert_and_an_incident() -> None:
    node, clock = online(), Clock()
    only_rule()
    clock.rounds(2, (node, [cpu(0.95)]))
    assert the_alert().status == "pending"
    clock.round((node, [cpu(0.97)]))
    alert = the_alert()
    assert (alert.status, alert.value, alert.worst) == ("firing", 0.97, 0.97)
    assert alert.incident is not None
    assert (alert.incident.about, alert.incident.title) == ("box-1", "Busy box")


def test_it_ends_with_its_incident_once_the_value_was_calm() -> None:
    node, clock = online(), Clock()
    only_rule()
    clock.rounds(3, (node, [cpu(0.95)]))
    clock.rounds(2, (node, [cpu(0.85)]))
    assert the_alert().status == "firing"
    clock.rounds(3, (node, [cpu(0.5)]))
    alert = the_alert()
    assert alert.status == "resolved"
    assert alert.incident is not None
    assert alert.incident.closed == alert.resolved == clock.now


def test_an_absent_value_keeps_an_alert_and_says_why_it_is_absent() -> None:
    node, clock = online(), Clock()
    only_rule()
    clock.rounds(3, (node, [cpu(0.95)]))
    clock.rounds(5, (node, [cpu(None)]))
    alert = the_alert()
    assert (alert.status, alert.value, alert.why) == ("firing", None, "Nobody looked.")
    assert alert.value_text == ""


def test_absent_values_never_fire() -> None:
    node, clock = online(), Clock()
    only_rule(above=False, threshold=0.1, clear=0.2)
    clock.rounds(6, (node, [cpu(None)]))
    assert not Alert.objects.exists()


def test_a_reading_of_long_ago_says_nothing_of_now() -> None:
    node, clock = online(), Clock()
    only_rule()
    tell(node, clock.now, [cpu(0.95)])
    for _ in range(8):
        clock.round()
    assert not Alert.objects.filter(status="firing").exists()


def test_a_short_excess_leaves_nothing_behind() -> None:
    node, clock = online(), Clock()
    only_rule()
    clock.round((node, [cpu(0.95)]))
    clock.round((node, [cpu(0.5)]))
    assert not Alert.objects.exists()


def test_a_rule_that_is_switched_off_takes_its_alerts_along() -> None:
    node, clock = online(), Clock()
    rule = only_rule()
    clock.rounds(3, (node, [cpu(0.95)]))
    Rule.objects.filter(pk=rule.pk).update(enabled=False)
    clock.round((node, [cpu(0.95)]))
    alert = the_alert()
    assert (alert.status, alert.ending) == ("resolved", "Its rule was switched off or changed.")


def test_a_node_that_leaves_the_fleet_takes_its_alerts_along() -> None:
    node, other, clock = online(), online("box-2"), Clock()
    only_rule()
    clock.rounds(3, (node, [cpu(0.95)]), (other, [cpu(0.1)]))
    Node.objects.filter(pk=node.pk).delete()
    clock.round((other, [cpu(0.1)]))
    assert not Alert.objects.filter(status="firing").exists()
    assert Incident.objects.get().closed == clock.now


def test_a_rule_may_be_about_one_node() -> None:
    node, other, clock = online(), online("box-2"), Clock()
    only_rule(node=other)
    clock.rounds(4, (node, [cpu(0.95)]), (other, [cpu(0.95)]))
    assert the_alert().node == other


def test_an_evaluator_that_was_away_concludes_nothing_from_what_it_missed() -> None:
    node, clock = online(), Clock()
    only_rule(for_seconds=60)
    clock.rounds(2, (node, [cpu(0.95)]))
    clock.round((node, [cpu(0.95)]), seconds=3600)
    assert the_alert().status == "pending"


def test_all_of_one_box_is_one_incident() -> None:
    node, clock = online(), Clock()
    first = only_rule()
    Rule.objects.create(
        name="Very busy",
        kind="metric",
        metric=first.metric,
        threshold=0.91,
        clear=0.8,
        for_seconds=0,
        severity="critical",
    )
    clock.rounds(4, (node, [cpu(0.95)]))
    incident = Incident.objects.get()
    assert incident.alerts.count() == 2
    assert (incident.severity, incident.title) == ("critical", "Very busy")


def test_what_fires_again_soon_goes_on_with_its_incident() -> None:
    node, clock = online(), Clock()
    only_rule(for_seconds=0, clear_seconds=0)
    for value in (0.95, 0.5, 0.95):
        clock.round((node, [cpu(value)]))
    incident = Incident.objects.get()
    assert (incident.closed, incident.reopened) == (None, 1)


def test_what_is_silenced_is_shown_but_is_no_incident_until_the_silence_ends() -> None:
    node, clock = online(), Clock()
    rule = only_rule(for_seconds=0)
    silence = Silence.objects.create(
        rule=rule,
        node=node,
        starts=clock.now,
        until=clock.now.replace(year=2999),
        by="a",
        reason="Known.",
    )
    clock.rounds(2, (node, [cpu(0.95)]))
    assert the_alert().hushed
    assert not Incident.objects.exists()
    silence.delete()
    clock.round((node, [cpu(0.95)]))
    assert not the_alert().hushed
    assert Incident.objects.get().alerts.get() == the_alert()


def test_work_that_was_announced_is_no_incident() -> None:
    node, clock = online(), Clock()
    only_rule(for_seconds=0)
    Maintenance.objects.create(
        node=node, starts=clock.now, until=clock.now.replace(year=2999), by="a", reason="Fans."
    )
    clock.round((node, [cpu(0.95)]))
    assert the_alert().hushed
    assert not Incident.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_one_evaluator_works_at_a_time() -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            held.set()
            done.wait(20)
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
        connections.close_all()

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert held.wait(20)
        assert evaluate() is False
    finally:
        done.set()
        other.join(20)
    assert evaluate() is True
