"""The stored past comes at the level that fits, whole, with its extremes and its holes."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from monitoring.metrics import CPU_UTILIZATION, ENERGY, FAN_SPEED, NOISE
from monitoring.samples import measured
from monitoring.scopes import Subject
from monitoring.storage import levels
from monitoring.storage.levels import HOUR, MINUTE, SECOND
from monitoring.storage.lines import with_breaks
from monitoring.storage.rollup import roll_up
from monitoring.storage.series import History, Series, gains, history, latest
from monitoring.storage.store import store
from tests.monitoring.cast import frame_of, make_node, now
from tests.monitoring.past import REASON, Row, beginning, keep

CPU, JOULES = CPU_UTILIZATION.name, ENERGY.name


def row(second: float, cpu: float = 0.5, layout: str = "cent") -> Row:
    return float(second), layout, (cpu, 10.0 * second, 40.0, 0.0)


def subject(node: int) -> Subject:
    return Subject("node", "box-1", node=node)


def past(node: int, start: datetime, seconds: float, points: int = 600) -> History:
    until = start + timedelta(seconds=seconds)
    return history([subject(node)], {CPU}, start, until, points)


def only(found: History) -> Series:
    (series,) = found.series
    assert len(series.at) == len(series.value) == len(series.low) == len(series.high)
    return series


def known(numbers: list[float | None]) -> list[float]:
    return [number for number in numbers if number is not None]


@pytest.fixture
def node(db: None) -> int:
    return make_node().pk


def test_a_short_past_is_told_by_the_second(node: int) -> None:
    start = beginning()
    keep(node, start, [row(n, n / 100) for n in range(100)])
    found = past(node, start, 100)
    assert (found.level, found.step_seconds) == ("second", 1.0)
    assert only(found).value == [n / 100 for n in range(100)]
    assert only(found).at == [start.timestamp() + n for n in range(100)]


def test_thinned_rows_lose_no_extreme(node: int) -> None:
    start = beginning()
    keep(node, start, [row(n, {77: 0.99, 301: 0.01}.get(n, 0.5)) for n in range(600)])
    found = past(node, start, 600, points=50)
    series = only(found)
    assert found.step_seconds == 12
    assert len(series.at) == 50
    assert (min(known(series.low)), max(known(series.high))) == (0.01, 0.99)
    assert sum(known(series.value)) / 50 == pytest.approx(0.5, abs=0.001)


def test_a_long_past_is_told_by_the_minute_and_then_by_the_hour(node: int) -> None:
    start = beginning()
    keep(node, start, [row(n, 0.99 if n == 61 else 0.5) for n in range(180)])
    roll_up(start + timedelta(hours=1))
    day = history([subject(node)], {CPU}, start - timedelta(hours=20), start + timedelta(hours=1))
    month = history([subject(node)], {CPU}, start - timedelta(days=30), start + timedelta(hours=1))
    assert (day.level, month.level) == ("minute", "hour")
    for found in (day, month):
        assert max(known(only(found).high)) == 0.99
        assert min(known(only(found).low)) == 0.5


def test_what_is_not_rolled_up_yet_is_told_all_the_same(node: int) -> None:
    end = now() - 5
    start = MINUTE.floor(timezone.now() - timedelta(minutes=20))
    for first, last in ((0, 60), (900, int(end - start.timestamp()))):
        keep(node, start, [row(n, n / 10_000) for n in range(first, last)])
    roll_up(start + timedelta(minutes=3))
    found = history([subject(node)], {CPU}, start - timedelta(hours=12), timezone.now())
    series = only(found)
    assert found.level == "minute"
    assert known(series.low)[0] == 0.0
    assert series.at[-1] >= end - found.step_seconds - 60
    whole = gains([subject(node)], {JOULES}, start, timezone.now(), timedelta(hours=1))
    assert sum(gain.amount for gain in whole) == pytest.approx(
        590 + 10 * (int(end - start.timestamp()) - 901)
    )


def test_a_hole_is_told_as_a_row_of_nothing(node: int) -> None:
    start = beginning()
    keep(node, start, [row(n) for n in (*range(60), *range(300, 360))])
    roll_up(start + timedelta(minutes=10))
    by_second = only(past(node, start, 600))
    by_minute = only(past(node, start, 600, points=10))
    assert by_second.value.count(None) == by_minute.value.count(None) == 1
    assert by_second.value[60] is None
    assert by_minute.value[1] is None


def test_a_series_goes_on_when_its_layout_changes(node: int) -> None:
    start = beginning()
    rows = [row(n, n / 100, "cent" if n % 2 else "ce") for n in range(60)]
    keep(node, start, rows)
    roll_up(start + timedelta(minutes=2))
    assert only(past(node, start, 60)).value == [n / 100 for n in range(60)]
    minute = only(past(node, start, 900, points=15))
    assert minute.value == [pytest.approx(0.295)]
    assert (minute.low, minute.high) == ([0.0], [0.59])


def test_an_absence_is_told_with_its_reason_as_of_the_end(node: int) -> None:
    start = beginning()
    keep(node, start, [row(n, 0.5, "Cent" if n >= 30 else "cent") for n in range(60)])
    series = only(past(node, start, 60))
    assert series.value == [0.5] * 30 + [None] * 30
    assert (series.kind, series.reason) == ("unavailable", REASON)


def test_series_of_one_metric_are_told_apart_by_scope_and_label(node: int) -> None:
    fans = [
        measured(FAN_SPEED, 1000.0 * n, source="hwmon", scope="host", label=f"fan{n}")
        for n in (1, 2)
    ]
    store([frame_of(node, 1, now() - 3, fans)])
    until = timezone.now()
    found = history([subject(node)], {FAN_SPEED.name}, until - timedelta(minutes=1), until)
    assert {series.key: series.value for series in found.series} == {
        "fan_speed_rpm@host{fan1}": [1000.0],
        "fan_speed_rpm@host{fan2}": [2000.0],
    }


def test_sound_is_thinned_by_its_energy(node: int) -> None:
    start = beginning()
    keep(node, start, [(float(n), "n", (0.0, 0.0, 40.0 + 20 * (n % 2), 0.0)) for n in range(240)])
    found = history([subject(node)], {NOISE.name}, start, start + timedelta(minutes=4), points=8)
    assert known(only(found).value) == [pytest.approx(57.03, abs=0.01)] * 8


def test_nothing_is_told_of_a_node_that_was_removed(node: int) -> None:
    start = beginning()
    keep(node, start, [row(n) for n in range(60)])
    gone = make_node("gone")
    keep(gone.pk, start, [row(n) for n in range(60)])
    pk = gone.pk
    gone.delete()
    assert past(pk, start, 60).series == []
    assert past(node, start, 60).series


def test_growth_is_told_by_bucket_with_the_time_it_is_known_for(node: int) -> None:
    start = beginning()
    keep(node, start, [row(n) for n in (*range(90), *range(110, 180))])
    roll_up(start + timedelta(minutes=10))
    until = start + timedelta(minutes=10)
    found = gains([subject(node)], {JOULES}, start, until, timedelta(minutes=1))
    assert [(gain.at - start.timestamp(), gain.amount, gain.covered) for gain in found] == [
        (0, 590.0, 59.0),
        (60, 390.0, 39.0),
        (120, 600.0, 60.0),
    ]
    assert {(gain.kind, gain.scope) for gain in found} == {("measured", "host")}


def test_a_counter_that_started_over_counts_from_nothing(node: int) -> None:
    start = beginning()
    keep(node, start, [(float(n), "ce", (0.0, float(n % 30), 0.0, 0.0)) for n in range(60)])
    until = start + timedelta(minutes=1)
    (gain,) = gains([subject(node)], {JOULES}, start, until, timedelta(minutes=1))
    assert gain.amount == 29 + 0 + 29


def test_the_newest_reading_is_found_and_an_old_one_is_not(node: int) -> None:
    other = make_node("box-2").pk
    start = timezone.now() - timedelta(seconds=40)
    keep(node, start, [row(n, n / 100, "cent" if n < 38 else "Cent") for n in range(39)])
    keep(other, start, [row(0)])
    found = latest([subject(node), subject(other)], timedelta(seconds=15))
    assert set(found) == {f"{node}/node"}
    newest = found[f"{node}/node"]
    assert newest.numbers[0] is None
    assert newest.fields[0][3] == "unavailable"
    assert newest.at == start + timedelta(seconds=38)


@given(
    st.lists(st.integers(0, 5000), min_size=1, max_size=60, unique=True).map(sorted),
    st.sampled_from([1, 2, 60]),
)
def test_breaks_stand_in_holes_only(moments: list[int], width: int) -> None:
    given = [float(moment * width) for moment in moments]
    broken = with_breaks(given, width)
    assert broken == sorted(set(broken))
    added = set(broken) - set(given)
    assert set(given) <= set(broken)
    for at in added:
        before = max(moment for moment in given if moment < at)
        after = min(moment for moment in given if moment > at)
        assert after - before > width


@given(
    seconds=st.floats(1, 3e8),
    points=st.integers(2, 5000),
    subjects=st.integers(1, 3000),
    age=st.floats(0, 3e8),
)
def test_a_question_is_never_answered_with_too_many_rows(
    seconds: float, points: int, subjects: int, age: float
) -> None:
    at = timezone.now()
    until = at - timedelta(seconds=age)
    since = until - timedelta(seconds=seconds)
    level = levels.choose(since, until, at, points, subjects, SECOND)
    width = levels.width(level, since, until, points)
    assert width % level.seconds == 0
    assert seconds / width <= points + 1
    if level is SECOND:
        assert seconds * subjects <= levels.MOST_SCANNED
    if level is not HOUR:
        assert since >= at - level.keep
