"""Boxes are taken out for firmware only within the hours of the week that are meant for it."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.choices import UpdateState
from dashboard.lifecycle import updates
from dashboard.updates.window import DAYS, is_open
from tests.dashboard.update_cast import Pair, both_labs, pair, shortened

__all__ = ["both_labs", "pair", "shortened"]

MONDAY = datetime(2026, 11, 30)


def hours(day: str, hour: int = 2, count: int = 4) -> dict[str, Any]:
    return {"firmware_day": day, "firmware_hour": hour, "firmware_hours": count}


@pytest.mark.parametrize(
    ("day", "hour", "count", "at", "expected"),
    [
        ("any", 2, 4, MONDAY, True),
        ("monday", 2, 4, MONDAY + timedelta(hours=1, minutes=59), False),
        ("monday", 2, 4, MONDAY + timedelta(hours=2), True),
        ("monday", 2, 4, MONDAY + timedelta(hours=6), False),
        ("sunday", 22, 6, MONDAY + timedelta(hours=3), True),
        ("sunday", 22, 6, MONDAY + timedelta(hours=5), False),
        ("tuesday", 2, 4, MONDAY + timedelta(hours=3), False),
    ],
)
def test_when_it_is_open(day: str, hour: int, count: int, at: datetime, expected: bool) -> None:
    assert is_open(hours(day, hour, count), at) is expected


@given(st.sampled_from(DAYS), st.integers(0, 23), st.integers(1, 168))
def test_it_is_open_for_just_so_many_hours_a_week(day: str, hour: int, count: int) -> None:
    at = [MONDAY + timedelta(hours=step, minutes=30) for step in range(168)]
    assert sum(is_open(hours(day, hour, count), one) for one in at) == count


def test_nothing_begins_outside_of_it(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"now": False}
    monkeypatch.setattr("dashboard.updates.window.is_open", lambda settings, now: found["now"])
    pair.approved()
    pair.work()
    assert pair.update(pair.a).state == UpdateState.APPROVED
    found["now"] = True
    updates.start_due()
    assert pair.update(pair.a).state == UpdateState.DRAINING
