"""Quiet hours and caps hold exactly when their schedule says, and the tightest wish counts."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from monitoring.accounts.quiet import Held, Rule, held, held_until
from monitoring.accounts.weekly import EVERY_DAY, Weekly

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
NIGHTS = Rule(
    name="nights", zone="UTC", hours=Weekly(EVERY_DAY, time(22), time(6)), power_watts=300
)
ALWAYS = Rule(name="cap", zone="UTC", hours=None, power_watts=400, batch_cap=8)


def test_without_rules_nothing_is_held_back() -> None:
    assert held([], 1, NOON) == Held()
    assert not held([], 1, NOON).anything
    assert held_until([], 1, NOON) is None


def test_a_cap_without_hours_holds_always() -> None:
    assert held([ALWAYS], 1, NOON).power_watts == 400
    assert held_until([ALWAYS], 1, NOON) is None


def test_of_two_rules_the_tighter_wish_counts_while_both_hold() -> None:
    rules = [NIGHTS, ALWAYS]
    assert held(rules, 1, NOON) == Held(power_watts=400, every_batch=8, why="cap")
    late = NOON.replace(hour=23)
    assert held(rules, 1, late) == Held(power_watts=300, every_batch=8, why="nights, cap")
    assert held_until(rules, 1, NOON) == NOON.replace(hour=22)
    assert held_until(rules, 1, late) == datetime(2026, 11, 28, 6, tzinfo=UTC)


def test_a_rule_for_one_node_leaves_the_others_alone() -> None:
    rule = Rule(name="cap", zone="UTC", hours=None, node=1, clock_hertz=1.2e9)
    assert held([rule], 1, NOON).clock_hertz == 1.2e9
    assert not held([rule], 2, NOON).anything
    assert held_until([rule], 2, NOON) is None


def test_a_deployment_has_its_own_cap_or_that_of_all_whichever_is_lower() -> None:
    rules = [
        Rule(name="all", zone="UTC", hours=None, batch_cap=8),
        Rule(name="chat", zone="UTC", hours=None, deployment=1, batch_cap=2),
        Rule(name="chat too", zone="UTC", hours=None, deployment=1, batch_cap=4),
        Rule(name="bulk", zone="UTC", hours=None, deployment=2, batch_cap=16),
    ]
    now = held(rules, 1, NOON)
    assert [now.batch_cap(deployment) for deployment in (1, 2, 3)] == [2, 8, 8]


def test_two_rules_that_take_turns_change_where_one_of_them_does() -> None:
    evening = Rule(
        name="evening", zone="UTC", hours=Weekly(EVERY_DAY, time(20), time(22)), power_watts=300
    )
    assert held_until([evening, NIGHTS], 1, NOON.replace(hour=21)) == NOON.replace(hour=22)


MINUTES = st.integers(0, 1439).map(lambda minute: time(minute // 60, minute % 60))
RULES = st.builds(
    Rule,
    name=st.sampled_from(["a", "b"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    hours=st.none() | st.builds(Weekly, st.frozensets(st.integers(0, 6)), MINUTES, MINUTES),
    node=st.none() | st.integers(1, 2),
    power_watts=st.none() | st.integers(100, 500),
    batch_cap=st.none() | st.integers(1, 9),
)
MOMENTS = st.integers(1_792_800_000, 1_795_000_000).map(lambda s: datetime.fromtimestamp(s, UTC))


@given(st.lists(RULES, max_size=4), MOMENTS)
def test_what_holds_is_what_the_schedules_say(rules: list[Rule], at: datetime) -> None:
    mine = [
        rule
        for rule in rules
        if rule.node in (None, 1)
        and (rule.hours is None or rule.hours.holds(at.astimezone(ZoneInfo(rule.zone))))
    ]
    now = held(rules, 1, at)
    wishes = [rule.power_watts for rule in mine if rule.power_watts is not None]
    assert now.power_watts == (min(wishes) if wishes else None)
    caps = [rule.batch_cap for rule in mine if rule.batch_cap is not None]
    assert now.batch_cap(7) == (min(caps) if caps else None)


@given(st.lists(RULES, max_size=3), MOMENTS)
def test_nothing_changes_before_the_time_that_is_named(rules: list[Rule], at: datetime) -> None:
    until, now = held_until(rules, 1, at), held(rules, 1, at)
    end = until or at + timedelta(days=8)
    for share in (0.1, 0.37, 0.5, 0.81, 0.999):
        assert held(rules, 1, at + (end - at) * share) == now
    if until is not None:
        assert held(rules, 1, until) != now
