"""The whole fleet by the minute, so that a chart of it reads a row a minute."""

from datetime import timedelta

import pytest

from monitoring.metrics import CPU_UTILIZATION, ENERGY, FIRST_TOKEN_BUCKET, NOISE
from monitoring.models import Hour, Layout, Minute
from monitoring.scopes import Subject
from monitoring.storage.rollup import roll_up
from monitoring.storage.series import Series, gains, history
from tests.monitoring.cast import make_node
from tests.monitoring.past import REASON, Row, beginning, keep

pytestmark = pytest.mark.django_db

NODES = Subject("group:node", "All nodes")


def row(second: int, cpu: float, layout: str = "cent") -> Row:
    return float(second), layout, (cpu, 10.0 * second, 40.0, 2.0 * second)


def fill(*cpus: float, seconds: int = 120, layout: str = "cent") -> None:
    start = beginning()
    for number, cpu in enumerate(cpus):
        node = make_node(f"{layout}-{number}")
        keep(node.pk, start, [row(n, cpu, layout) for n in range(seconds)])


def series(metric: str, points: int = 30) -> dict[str, Series]:
    start = beginning()
    found = history([NODES], {metric}, start, start + timedelta(minutes=15), points)
    return {one.label: one for one in found.series}


def test_a_gauge_is_told_as_sum_mean_low_high_and_count() -> None:
    fill(0.1, 0.2, 0.6)
    roll_up(beginning() + timedelta(minutes=10))
    found = series(CPU_UTILIZATION.name)
    values = {label: one.value[0] for label, one in found.items()}
    assert values == pytest.approx({"sum": 0.9, "mean": 0.3, "low": 0.1, "high": 0.6, "count": 3})
    assert len(found["sum"].at) == 2
    assert {one.kind for one in found.values()} == {"derived"}


def test_the_extremes_of_a_sum_are_not_made_up() -> None:
    fill(0.1, 0.6)
    roll_up(beginning() + timedelta(minutes=10))
    found = series(CPU_UTILIZATION.name)
    assert (found["sum"].low[0], found["sum"].high[0]) == (None, None)
    assert (found["mean"].low[0], found["mean"].high[0]) == (0.1, 0.6)


def test_counters_and_histograms_add_up_what_they_grew_by() -> None:
    fill(0.1, 0.6)
    start = beginning()
    roll_up(start + timedelta(minutes=10))
    wanted = {ENERGY.name, FIRST_TOKEN_BUCKET.name}
    grown = gains([NODES], wanted, start, start + timedelta(minutes=15), timedelta(minutes=15))
    assert {(gain.metric, gain.label): gain.amount for gain in grown} == {
        (ENERGY.name, "sum"): 2 * 1190.0,
        (FIRST_TOKEN_BUCKET.name, "le=1"): 2 * 238.0,
    }


def test_levels_of_sound_are_never_added_up() -> None:
    fill(0.1, 0.6)
    roll_up(beginning() + timedelta(minutes=10))
    assert series(NOISE.name) == {}


def test_what_no_member_has_is_absent_with_a_reason_and_counted_as_none() -> None:
    fill(0.1, 0.2, layout="Ce")
    roll_up(beginning() + timedelta(minutes=10))
    found = series(CPU_UTILIZATION.name)
    assert REASON not in found["mean"].reason
    assert (found["mean"].kind, found["mean"].value[0]) == ("unavailable", None)
    assert found["mean"].reason
    assert found["count"].value[0] == 0


def test_a_minute_that_gets_other_series_later_is_counted_once() -> None:
    start = beginning()
    fill(0.1, layout="ce")
    roll_up(start + timedelta(minutes=15))
    fill(0.3, layout="cent")
    roll_up(start + timedelta(minutes=15))
    groups = Layout.objects.filter(subject="group:node")
    assert groups.count() == 2
    assert Minute.objects.filter(layout__in=groups).count() == 2
    assert Hour.objects.filter(layout__in=groups).count() == 1
    grown = gains([NODES], {ENERGY.name}, start, start + timedelta(hours=1), timedelta(hours=1))
    assert [gain.amount for gain in grown] == [2 * 1190.0]


def test_ranks_are_in_no_group() -> None:
    fill(0.1)
    roll_up(beginning() + timedelta(minutes=10))
    names = set(Layout.objects.filter(node=None).values_list("subject", flat=True))
    assert names == {"group:node"}
