"""Frames reach their table once, whatever comes twice, late or from a box that is gone."""

import math

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from monitoring.live.frames import Frame
from monitoring.metrics import METRICS
from monitoring.models import Due, Layout, Reading
from monitoring.samples import Sample, measured, unavailable
from monitoring.storage.levels import MINUTE
from monitoring.storage.store import store
from tests.monitoring.cast import engine_samples, frame_of, make_node, node_samples, now

pytestmark = pytest.mark.django_db

SIGNED = [metric for metric in METRICS.values() if metric.signed]


def frames(node: int, count: int, end: float | None = None) -> list[Frame]:
    start = (end or now()) - count
    samples = [*node_samples(), *engine_samples("abc")]
    return [frame_of(node, seq, start + seq, samples) for seq in range(count)]


def test_every_subject_of_a_frame_is_a_row() -> None:
    (frame,) = frames(make_node().pk, 1)
    store([frame])
    assert frame.stored == Reading.objects.count() == 4


def test_a_frame_that_was_there_is_left_and_those_beside_it_are_stored() -> None:
    told = frames(make_node().pk, 5)
    store(told[:3])
    store(told)
    assert [frame.stored for frame in told] == [0, 0, 0, 4, 4]
    assert Reading.objects.count() == 20


def test_a_frame_told_twice_in_one_batch_counts_once() -> None:
    node, at = make_node(), now()
    twice = [frame_of(node.pk, seq, at, node_samples()) for seq in (1, 2)]
    store(twice)
    assert sorted(frame.stored or 0 for frame in twice) == [0, 1]
    assert Reading.objects.count() == 1


def test_late_readings_note_their_minutes_as_due() -> None:
    node = make_node()
    store(frames(node.pk, 3))
    assert not Due.objects.exists()
    late = frames(node.pk, 3, end=now() - 600)
    store(late)
    assert {due.at for due in Due.objects.all()} == {MINUTE.floor(frame.at) for frame in late}


def test_a_reading_older_than_what_is_kept_is_refused_and_says_so() -> None:
    node = make_node()
    old = frame_of(node.pk, 1, now() - 3 * 86_400, node_samples())
    store([old])
    assert (old.stored, Reading.objects.count()) == (0, 0)
    assert "older than what is kept" in old.refused[-1]


def test_a_node_that_was_removed_is_refused_and_the_others_are_stored() -> None:
    here, gone = make_node(), make_node("gone")
    removed = gone.pk
    store(frames(removed, 1))
    gone.delete()
    told = [*frames(here.pk, 1), *frames(removed, 1)]
    store(told)
    assert [frame.stored for frame in told] == [4, 0]
    assert "not in the fleet" in told[1].refused[0]


def test_removing_a_node_deletes_no_reading_but_nothing_describes_them_any_more() -> None:
    node = make_node()
    store(frames(node.pk, 3))
    with CaptureQueriesContext(connection) as queries:
        node.delete()
    assert not any("monitoring_reading" in query["sql"] for query in queries)
    assert Reading.objects.count() == 12
    assert not Layout.objects.exists()


def test_a_layout_that_was_removed_meanwhile_is_made_again() -> None:
    node = make_node()
    store(frames(node.pk, 1, end=now() - 5))
    Layout.objects.all().delete()
    told = frames(node.pk, 1)
    store(told)
    assert told[0].stored == Layout.objects.count() == 4


def test_a_batch_of_known_layouts_takes_few_statements() -> None:
    node = make_node()
    store(frames(node.pk, 1, end=now() - 5))
    with CaptureQueriesContext(connection) as queries:
        store(frames(node.pk, 4))
    asked = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
    assert len(asked) <= 2


@pytest.fixture
def node_pk() -> int:
    return make_node().pk


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.generate],
)
@given(
    numbers=st.lists(st.none() | st.floats(-1e99, 1e99), min_size=1, max_size=len(SIGNED)),
    micro=st.integers(0, 999_999),
)
def test_what_is_read_back_is_what_was_told(
    node_pk: int, numbers: list[float | None], micro: int
) -> None:
    Reading.objects.all()._raw_delete("default")
    samples: list[Sample] = [
        unavailable(metric, "It is not there.", source="s", scope="host")
        if number is None
        else measured(metric, number, source="s", scope="host")
        for metric, number in zip(SIGNED, numbers, strict=False)
    ]
    at = math.floor(now()) - 30 + micro / 1e6
    store([frame_of(node_pk, 1, at, samples)])
    reading = Reading.objects.get()
    assert reading.numbers == numbers
    assert abs(reading.at.timestamp() - at) < 1.5e-6
    assert reading.at <= timezone.now()
