"""Whoever decides is told that something waits for them, and that it is done."""

import pytest

from dashboard.choices import UpdateState
from dashboard.updates.verifying import verify
from monitoring.models import Channel, Delivery
from tests.dashboard.update_cast import Pair, both_labs, pair, shortened

__all__ = ["both_labs", "pair", "shortened"]


def channel(name: str, least: str, **changes: object) -> Channel:
    return Channel.objects.create(name=name, kind="webhook", sealed="", least=least, **changes)


def told(to: Channel) -> list[str]:
    rows = Delivery.objects.filter(channel=to).order_by("pk")
    return [str(one.message["title"]) for one in rows]


WANTED = "[Approval] Firmware 1.1.0 waits for an administrator"
DONE = "[Done] Firmware 1.1.0 runs"


def test_each_channel_hears_what_it_is_for(pair: Pair) -> None:
    all_of_it, grave = channel("all", "note"), channel("grave", "warning")
    silent = [
        channel("off", "note", enabled=False),
        channel("critical", "critical"),
        channel("escalation", "note", after_minutes=10),
    ]
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until_state(pair.a, UpdateState.RELEASED)
    assert told(all_of_it) == [WANTED, DONE]
    assert told(grave) == [WANTED]
    assert [told(one) for one in silent] == [[], [], []]
    message = Delivery.objects.filter(channel=all_of_it).earliest("pk").message
    assert message["lines"] == [
        "bios.bin 1.1.0: node-a",
        "Asked for by ada: It has holes.",
        "An older version cannot be put back, as far as is known.",
    ]


def test_what_is_verified_twice_is_told_once(pair: Pair) -> None:
    hears = channel("all", "note")
    rollout = pair.draft()
    verify(rollout)
    verify(rollout)
    assert told(hears) == [WANTED]


@pytest.mark.parametrize("fault", ["verify"])
def test_a_box_that_is_held_is_an_alert_and_no_news(pair: Pair, fault: str) -> None:
    hears = channel("all", "note")
    pair.lab_a.turn(fault=fault)
    pair.approved()
    pair.held(pair.a)
    assert told(hears) == [WANTED]
