"""Hours of the week go by the clock on the wall, over midnight and through its changes."""

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.accounts.weekly import Weekly, edges, next_change

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]
)
MINUTES = st.integers(0, 1439).map(lambda minute: time(minute // 60, minute % 60))
SPANS = st.builds(Weekly, st.frozensets(st.integers(0, 6)), MINUTES, MINUTES)
MOMENTS = st.integers(1_700_000_000, 1_770_000_000).map(lambda s: datetime.fromtimestamp(s, UTC))


def berlin(day: int, hour: int, minute: int = 0, *, month: int = 11) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=BERLIN)


NIGHT = Weekly(frozenset({4}), time(22), time(6))
"""Of Friday; the 27th of November 2026 is one."""


@pytest.mark.parametrize(
    ("at", "holds"),
    [
        (berlin(27, 21, 59), False),
        (berlin(27, 22), True),
        (berlin(27, 23, 59), True),
        (berlin(28, 0), True),
        (berlin(28, 5, 59), True),
        (berlin(28, 6), False),
        (berlin(28, 22), False),
        (berlin(27, 5), False),  # Thursday's night is not asked for.
    ],
)
def test_a_night_belongs_to_the_day_on_which_it_begins(at: datetime, holds: bool) -> None:
    assert NIGHT.holds(at) == holds


def test_the_same_time_twice_is_a_whole_day() -> None:
    sunday = Weekly(frozenset({6}))
    assert sunday.holds(berlin(29, 0))
    assert sunday.holds(berlin(29, 23, 59))
    assert not sunday.holds(berlin(30, 0))
    assert sunday.length == timedelta(days=1)
    shifted = Weekly(frozenset({6}), time(8), time(8))
    assert shifted.holds(berlin(30, 7, 59))
    assert not shifted.holds(berlin(30, 8))


def test_an_hour_that_comes_twice_holds_twice() -> None:
    """On the 25th of October 2026 the clock goes from 3:00 back to 2:00."""
    span = Weekly(begins=time(2), ends=time(3))
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    for at, holds in ((first, True), (first + timedelta(hours=1), True)):
        assert span.holds(at.astimezone(BERLIN)) == holds
    assert not span.holds((first + timedelta(hours=2)).astimezone(BERLIN))


def test_an_hour_that_is_leapt_over_does_not_occur() -> None:
    """On the 29th of March 2026 the clock goes from 2:00 on to 3:00."""
    span = Weekly(begins=time(2), ends=time(3))
    begin = datetime(2026, 3, 29, 0, tzinfo=UTC)
    moments = [begin + timedelta(minutes=minutes) for minutes in range(240)]
    assert not any(span.holds(at.astimezone(BERLIN)) for at in moments)


def test_a_span_that_begins_in_the_leap_begins_behind_it() -> None:
    span = Weekly(begins=time(2, 30), ends=time(5))
    before = datetime(2026, 3, 29, 0, 0, tzinfo=UTC)

    def holds(at: datetime) -> bool:
        return span.holds(at.astimezone(BERLIN))

    assert next_change(holds, [span], BERLIN, before) == datetime(2026, 3, 29, 1, tzinfo=UTC)


def wall_clock_oracle(span: Weekly, local: datetime) -> bool:
    """Every occurrence of the last two days, written out as times on the wall."""
    wall = local.replace(tzinfo=None)
    for back in range(3):
        day = wall.date() - timedelta(days=back)
        if day.weekday() not in span.days:
            continue
        begin = datetime.combine(day, span.begins)
        end = datetime.combine(day, span.ends)
        if span.ends <= span.begins:
            end += timedelta(days=1)
        if begin <= wall < end:
            return True
    return False


@given(SPANS, ZONES, MOMENTS)
def test_a_span_holds_exactly_when_its_occurrences_say_so(
    span: Weekly, zone: str, at: datetime
) -> None:
    local = at.astimezone(ZoneInfo(zone))
    assert span.holds(local) == wall_clock_oracle(span, local)


@given(SPANS, ZONES, MOMENTS, st.integers(1, 5000))
def test_nothing_changes_between_two_edges(
    span: Weekly, zone: str, begin: datetime, minutes: int
) -> None:
    where, end = ZoneInfo(zone), begin + timedelta(minutes=minutes)
    cuts = [begin, *edges([span], where, begin, end), end]
    for start, stop in pairwise(cuts):
        probes = {start, start + (stop - start) / 2, stop - timedelta(microseconds=1)}
        states = {(span.holds(p.astimezone(where)), p.astimezone(where).date()) for p in probes}
        assert len(states) == 1
