"""Minutes and hours come to what their seconds were, and stay so however often they are made."""

from datetime import datetime, timedelta
from math import log10
from typing import Any

import psycopg
import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dashboard.models import Node
from monitoring.models.readings import Due, Hour, Minute, Progress, RolledUp
from monitoring.storage.levels import HOUR
from monitoring.storage.rollup import LOCK, roll_up
from monitoring.storage.shapes import LEVEL
from tests.monitoring.cast import make_node
from tests.monitoring.past import Row, beginning, covered, expected, forget_all, keep

pytestmark = pytest.mark.django_db

LAYOUTS = ["cent", "cent", "cent", "tce", "Cent", "cEn", "ce"]
STEPS = st.sampled_from([1.0, 1.0, 1.0, 1.0, 0.5, 2.5, 3.0, 3.5, 9.0, 31.0, 70.0])


@st.composite
def pasts(draw: st.DrawFn) -> list[Row]:
    """Up to some minutes of one subject: pauses, restarts of counters, layouts that change."""
    rows: list[Row] = []
    at = draw(st.floats(0, 100).map(lambda x: round(x, 3)))
    for _reading in range(draw(st.integers(1, 12))):
        numbers = draw(
            st.tuples(
                st.floats(0, 1e6),
                st.floats(0, 1e9),
                st.floats(-20, 130),
                st.integers(0, 1000).map(float),
            )
        )
        rows.append((at, draw(st.sampled_from(LAYOUTS)), numbers))
        at = round(at + draw(STEPS), 3)
    return rows


def told(model: type[RolledUp], start: datetime) -> dict[tuple[int, str], tuple[Any, ...]]:
    """By bucket and shape, over the layouts of the bucket: as `Came.summary` tells it."""
    found: dict[tuple[int, str], list[tuple[Any, ...]]] = {}
    for row in model.objects.filter(layout__node__isnull=False).select_related("layout"):  # type: ignore[attr-defined]
        at = int((row.at - start).total_seconds())
        columns = zip(row.n, row.low, row.mean, row.high, row.last, row.gain, strict=True)
        for shape, cell in zip(row.layout.shapes, columns, strict=True):
            found.setdefault((at, shape), []).append(cell)
    return {key: _joined(key[1], cells) for key, cells in found.items()}


def _joined(shape: str, cells: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    n = sum(cell[0] for cell in cells)
    lows = [cell[1] for cell in cells if cell[1] is not None]
    highs = [cell[3] for cell in cells if cell[3] is not None]
    gains = [cell[5] for cell in cells if cell[5] is not None]
    means = [(cell[0], cell[2]) for cell in cells if cell[2] is not None]
    if shape == LEVEL and means:
        means = [(count, 10 ** (mean / 10)) for count, mean in means]
    mean = sum(c * m for c, m in means) / n if means else None
    if shape == LEVEL and mean is not None:
        mean = 10 * log10(mean)
    return (
        n,
        min(lows, default=None),
        mean,
        max(highs, default=None),
        {cell[4] for cell in cells},
        sum(gains) if gains else None,
    )


def check(model: type[RolledUp], rows: list[Row], seconds: int, start: datetime) -> None:
    wanted = expected(rows, seconds)
    found = told(model, start)
    assert {key for key, cell in found.items() if cell[0]} == set(wanted)
    for key, came in wanted.items():
        n, low, mean, high, last, gain = came.summary(key[1])
        assert found[key][:2] == (n, low)
        assert found[key][2] == (mean if mean is None else pytest.approx(mean, rel=1e-9, abs=1e-9))
        assert found[key][3] == high
        assert last in found[key][4]
        assert found[key][5] == (gain if gain is None else pytest.approx(gain, rel=1e-9, abs=1e-6))
    sums: dict[int, float] = {}
    for row in model.objects.filter(layout__node__isnull=False):  # type: ignore[attr-defined]
        at = int((row.at - start).total_seconds())
        sums[at] = sums.get(at, 0.0) + row.covered
    for at, known in covered(rows, seconds).items():
        assert sums[at] == pytest.approx(known, abs=1e-4)


@pytest.fixture
def node() -> Node:
    return make_node()


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.generate],
)
@given(rows=pasts())
def test_a_roll_up_is_what_plain_arithmetic_says(node: Node, rows: list[Row]) -> None:
    forget_all()
    start = beginning()
    keep(node.pk, start, rows)
    roll_up(start + timedelta(minutes=15))
    check(Minute, rows, 60, start)
    check(Hour, rows, 3600, HOUR.floor(start))


def rows_of(model: type[RolledUp]) -> list[dict[str, Any]]:
    columns = ("layout_id", "at", "rows", "covered", "n", "low", "mean", "high", "last", "gain")
    return list(model.objects.order_by("layout_id", "at").values(*columns))  # type: ignore[attr-defined]


def second(number: int, layout: str = "cent") -> Row:
    return float(number), layout, (number / 100, 100.0 * number, 40.0, float(number))


def test_rolling_up_again_changes_nothing(node: Node) -> None:
    start = beginning()
    keep(node.pk, start, [second(n, "cent" if n % 50 else "Cent") for n in range(130)])
    now = start + timedelta(minutes=15)
    roll_up(now)
    before = rows_of(Minute), rows_of(Hour)
    Progress.objects.all().delete()
    roll_up(now)
    assert (rows_of(Minute), rows_of(Hour)) == before
    assert len(before[0]) > 2


def test_a_late_reading_changes_its_minute_and_its_hour(node: Node) -> None:
    start = beginning()
    now = start + timedelta(minutes=15)
    keep(node.pk, start, [second(n) for n in range(130) if n != 30])
    roll_up(now)
    Due.objects.all().delete()
    keep(node.pk, start, [(30.0, "cent", (9.0, 3000.0, 40.0, 30.0))])
    roll_up(now)
    minute = Minute.objects.filter(layout__node=node).earliest("at")
    hour = Hour.objects.get(layout__node=node)
    assert (minute.n[0], minute.high[0]) == (60, 9.0)
    assert (hour.n[0], hour.high[0]) == (130, 9.0)
    assert not Due.objects.exists()


def test_the_last_minutes_are_done_again_without_being_asked(node: Node) -> None:
    start = beginning()
    keep(node.pk, start, [second(n) for n in range(60) if n != 30])
    roll_up(start + timedelta(minutes=1))
    keep(node.pk, start, [(30.0, "cent", (9.0, 3000.0, 40.0, 30.0))])
    Due.objects.all().delete()
    roll_up(start + timedelta(minutes=3))
    assert Minute.objects.get(layout__node=node).n[0] == 60


def test_hours_without_a_worker_are_made_up_for(node: Node) -> None:
    start = beginning()
    keep(node.pk, start, [second(n) for n in range(3)])
    roll_up(start + timedelta(minutes=1))
    keep(node.pk, start, [second(n) for n in range(600, 603)])
    Due.objects.all().delete()
    roll_up(start + timedelta(hours=2))
    assert Minute.objects.filter(layout__node=node).count() == 2
    assert Hour.objects.get(layout__node=node).n[0] == 6


def test_a_run_that_has_no_time_left_is_gone_on_with(node: Node) -> None:
    start = beginning()
    keep(node.pk, start, [second(n) for n in range(0, 850, 10)])
    now = start + timedelta(minutes=15)
    assert roll_up(now, seconds=0) == 0
    assert roll_up(now) > 0
    assert Minute.objects.filter(layout__node=node).count() == 15


def test_sound_is_averaged_by_its_energy(node: Node) -> None:
    start = beginning()
    keep(node.pk, start, [(float(n), "n", (0.0, 0.0, 40.0 + 20 * (n % 2), 0.0)) for n in range(60)])
    roll_up(start + timedelta(minutes=15))
    for model in (Minute, Hour):
        assert model.objects.get(layout__node=node).mean == [pytest.approx(57.03, abs=0.01)]


def test_numbers_at_the_edge_of_what_can_be_counted_do_no_harm(node: Node) -> None:
    start = beginning()
    numbers = [(5e-324, 5e-324, 5e-324, 0.0), (1e99, 1e99, -9e9, 0.0), (0.0, 3e-310, 9e9, 1e99)]
    keep(node.pk, start, [(float(n), "cent", numbers[n % 3]) for n in range(120)])
    roll_up(start + timedelta(minutes=15))
    assert Hour.objects.get(layout__node=node).n == [120] * 4


def test_two_workers_never_do_the_same(node: Node) -> None:
    start = beginning()
    keep(node.pk, start, [second(n) for n in range(60)])
    now = start + timedelta(minutes=15)
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        assert roll_up(now) == 0
        other.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
        assert roll_up(now) > 0
