"""Who is told what, and how often."""

from datetime import datetime, timedelta

import msgspec
import pytest

from dashboard.models import Node
from monitoring.alerts.incidents import acknowledge
from monitoring.models import Channel, Delivery, Incident, Rule, Silence
from monitoring.vault import seal
from tests.dashboard.pages_cast import HARDWARE
from tests.monitoring.alert_cast import Clock, cpu, online, only_rule

pytestmark = pytest.mark.django_db

HIGH, LOW = [cpu(0.95)], [cpu(0.1)]


def channel(name: str = "ops", **values: object) -> Channel:
    return Channel.objects.create(
        name=name, kind="slack", sealed=seal({"url": "http://127.0.0.1:1/"}), **values
    )


def told(channel: Channel | None = None) -> list[str]:
    said = Delivery.objects.order_by("created", "pk")
    if channel is not None:
        said = said.filter(channel=channel)
    return list(said.values_list("occasion", flat=True))


def trouble(clock: Clock, rounds: int = 2) -> Node:
    node = online()
    clock.rounds(rounds, (node, HIGH))
    return node


def test_an_incident_is_told_once_when_it_opens_and_once_when_it_is_over() -> None:
    clock = Clock()
    only_rule(for_seconds=0, clear_seconds=0)
    channel()
    node = trouble(clock, rounds=6)
    assert told() == ["opened"]
    clock.rounds(3, (node, LOW))
    assert told() == ["opened", "resolved"]
    first, last = Delivery.objects.order_by("created", "pk")
    assert first.message["title"] == "[Warning] Busy box · box-1"
    assert first.message["lines"] == ["Busy box · box-1: 95 % (limit 90 %)"]
    assert last.message["title"] == "[Over] Busy box · box-1"


def test_everything_of_one_box_comes_in_one_message() -> None:
    clock = Clock()
    rule = only_rule(for_seconds=0)
    for index in range(14):
        Rule.objects.create(
            name=f"Rule {index}",
            kind="metric",
            metric=rule.metric,
            threshold=0.9,
            clear=0.8,
            for_seconds=0,
        )
    channel()
    trouble(clock, rounds=4)
    [delivery] = Delivery.objects.all()
    assert len(delivery.message["lines"]) == 11
    assert delivery.message["lines"][-1] == "and more"


def test_a_channel_hears_what_is_grave_enough_for_it() -> None:
    clock = Clock()
    rule = only_rule(for_seconds=0, severity="warning")
    everyone, pager = channel("everyone"), channel("pager", least="critical")
    node = trouble(clock, rounds=3)
    assert (told(everyone), told(pager)) == (["opened"], [])
    Rule.objects.filter(pk=rule.pk).update(severity="critical")
    clock.rounds(2, (node, HIGH))
    assert told(everyone) == ["opened", "worse"]
    assert told(pager) == ["opened"]


def test_a_reminder_says_what_still_is_and_not_what_was() -> None:
    clock = Clock()
    rule = only_rule(for_seconds=0, clear_seconds=0, name="A little", threshold=0.5, clear=0.5)
    at_once = {"for_seconds": 0, "clear_seconds": 0, "threshold": 0.9, "clear": 0.9}
    much = {"name": "Much", "severity": "critical", "kind": "metric", "metric": rule.metric}
    Rule.objects.create(**much, **at_once)
    everyone, pager = channel("everyone", repeat_minutes=1), channel("pager", least="critical")
    Channel.objects.filter(pk=pager.pk).update(repeat_minutes=1)
    node = trouble(clock)
    clock.rounds(13, (node, [cpu(0.7)]))
    assert (told(everyone), told(pager)) == (["opened", "still"], ["opened"])
    title = Delivery.objects.get(channel=everyone, occasion="still").message["title"]
    assert title == "[Warning, still] A little · box-1"
    clock.rounds(2, (node, HIGH))
    assert told(pager) == ["opened", "still"]


def test_an_escalation_hears_only_of_what_nobody_has_taken_on() -> None:
    clock = Clock()
    only_rule(for_seconds=0)
    boss = channel("boss", after_minutes=1, repeat_minutes=0)
    node = trouble(clock, rounds=2)
    clock.rounds(2, (node, HIGH), seconds=20)
    assert told(boss) == []
    clock.rounds(1, (node, HIGH), seconds=20)
    assert told(boss) == ["opened"]


def test_what_somebody_has_taken_on_is_neither_repeated_nor_escalated() -> None:
    clock = Clock()
    only_rule(for_seconds=0)
    ops, boss = channel("ops", repeat_minutes=1), channel("boss", after_minutes=1)
    node = trouble(clock)
    assert acknowledge(Incident.objects.get(), "ada", clock.now)
    clock.rounds(6, (node, HIGH), seconds=25)
    assert (told(ops), told(boss)) == (["opened"], [])


def test_what_goes_on_is_repeated_at_the_channels_interval() -> None:
    clock = Clock()
    only_rule(for_seconds=0)
    ops = channel(repeat_minutes=1)
    node = trouble(clock)
    clock.rounds(6, (node, HIGH), seconds=25)
    assert told(ops) == ["opened", "still", "still"]


def test_after_hours_without_a_worker_there_is_one_message_not_many() -> None:
    clock = Clock()
    only_rule(for_seconds=0)
    ops = channel(repeat_minutes=1)
    node = trouble(clock)
    clock.round((node, HIGH), seconds=6 * 3600)
    clock.round((node, HIGH))
    assert told(ops) == ["opened", "still"]


def test_a_silence_stops_the_reminders() -> None:
    clock = Clock()
    only_rule(for_seconds=0)
    ops = channel(repeat_minutes=1)
    node = trouble(clock)
    until: datetime = clock.now + timedelta(days=1)
    Silence.objects.create(starts=clock.now, until=until, reason="Known.", by="ada")
    clock.rounds(4, (node, HIGH), seconds=25)
    assert told(ops) == ["opened"]


def test_what_was_over_before_it_could_be_told_is_not_told() -> None:
    clock, node = Clock(), online()
    only_rule(for_seconds=0, clear_seconds=0)
    channel()
    clock.round((node, HIGH))
    clock.round((node, LOW))
    assert told() == []


def test_a_channel_hears_it_in_its_own_language() -> None:
    clock = Clock()
    only_rule(for_seconds=0)
    channel(language="zh-hans")
    trouble(clock)
    assert Delivery.objects.get().message["title"].endswith("Busy box · box-1")


def test_a_channel_that_is_off_hears_nothing() -> None:
    clock = Clock()
    only_rule(for_seconds=0)
    channel(enabled=False)
    trouble(clock, rounds=3)
    assert told() == []


def test_what_is_made_up_says_so_in_its_title() -> None:
    clock, node = Clock(), online()
    node.inventory = msgspec.to_builtins(msgspec.structs.replace(HARDWARE, simulated=True))
    node.save()
    only_rule(for_seconds=0)
    channel()
    clock.rounds(2, (node, HIGH))
    assert Delivery.objects.get().message["title"] == "[Simulated] [Warning] Busy box · box-1"


def test_what_comes_and_goes_is_told_as_one_until_it_stays_away() -> None:
    clock = Clock()
    only_rule(for_seconds=0, clear_seconds=0)
    channel()
    node = online()
    for _again in range(8):
        clock.rounds(3, (node, HIGH))
        clock.rounds(3, (node, LOW))
    assert Incident.objects.get().reopened == 7
    assert told() == ["opened", "resolved", "opened", "resolved", "opened"]
    clock.rounds(2, (node, LOW), seconds=601)
    assert told()[5:] == ["resolved"]


def test_an_escalation_counts_from_the_last_return() -> None:
    clock = Clock()
    only_rule(for_seconds=0, clear_seconds=0)
    channel(after_minutes=5)
    node = trouble(clock, rounds=50)
    clock.rounds(4, (node, LOW))
    clock.rounds(40, (node, HIGH))
    assert (Incident.objects.get().reopened, told()) == (1, [])
    clock.rounds(25, (node, HIGH))
    assert told() == ["opened"]
