"""Tables by time are there before their readings, and go as a whole."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from monitoring.models import Layout, Reading
from monitoring.storage import partitions
from monitoring.storage.levels import HOUR, LEVELS, MINUTE, SECOND, Level
from monitoring.storage.retention import care
from tests.monitoring.cast import make_node
from tests.monitoring.past import keep


def put(at: datetime, layout: int = 1) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO monitoring_reading VALUES (%s, %s, '{1}')", [layout, at])


def part_of_row(at: datetime) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tableoid::regclass::text FROM monitoring_reading WHERE at = %s", [at]
        )
        return str(cursor.fetchone()[0])


@pytest.mark.django_db
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_the_present_and_two_periods_ahead_are_there_from_the_start(level: Level) -> None:
    names = partitions.names(level)
    part = partitions.part_of(level, timezone.now())
    for _period in range(3):
        assert part.name in names
        part = partitions.Part(level, part.end)


@pytest.mark.django_db
def test_a_reading_of_now_lies_in_its_day() -> None:
    at = timezone.now()
    put(at)
    assert part_of_row(at) == f"monitoring_reading_{at.astimezone(UTC):%Y%m%d}"
    assert partitions.strays() == 0


@pytest.mark.django_db
def test_parts_are_made_once() -> None:
    later = timezone.now() + timedelta(days=1)
    assert f"{partitions.part_of(SECOND, later + timedelta(days=2)).name}" in partitions.ensure(
        later
    )
    assert partitions.ensure(later) == []


@pytest.mark.django_db
def test_strays_are_counted_and_moved_when_their_part_is_made() -> None:
    at = timezone.now() + timedelta(days=9)
    put(at)
    assert partitions.strays() == 1
    partitions.ensure(at)
    assert partitions.strays() == 0
    assert part_of_row(at).endswith(f"{at.astimezone(UTC):%Y%m%d}")


@pytest.mark.django_db
def test_what_is_too_old_is_dropped_as_a_whole() -> None:
    today = timezone.now()
    put(today)
    first = partitions.names(SECOND)[0]
    care(today + timedelta(days=3))
    assert first not in partitions.names(SECOND)
    assert Reading.objects.count() == 0
    assert partitions.part_of(SECOND, today + timedelta(days=5)).name in partitions.names(SECOND)


@pytest.mark.django_db
def test_each_level_is_kept_for_its_own_time() -> None:
    today = timezone.now()
    hour = partitions.part_of(HOUR, today).name
    minute = partitions.part_of(MINUTE, today).name
    care(today + timedelta(days=40))
    assert minute in partitions.names(MINUTE)
    care(today + timedelta(days=100))
    assert minute not in partitions.names(MINUTE)
    assert hour in partitions.names(HOUR)
    care(today + timedelta(days=2000))
    assert hour not in partitions.names(HOUR)


@pytest.mark.django_db
def test_old_strays_go_too() -> None:
    put(timezone.now() - timedelta(days=30))
    care()
    assert partitions.strays() == 0


@pytest.mark.django_db
def test_layouts_go_when_nothing_uses_them_and_stay_while_they_are_new() -> None:
    node = make_node()
    keep(node.pk, timezone.now() - timedelta(seconds=30), [(0.0, "cent", (1.0, 1.0, 1.0, 1.0))])
    used = Layout.objects.get()
    for number, age in enumerate((timedelta(hours=1), timedelta(days=2))):
        layout = Layout.objects.create(
            node=node, subject="node", digest=str(number), fields=[], shapes=""
        )
        Layout.objects.filter(pk=layout.pk).update(created=timezone.now() - age)
    Layout.objects.filter(pk=used.pk).update(created=timezone.now() - timedelta(days=2))
    care()
    assert {layout.digest for layout in Layout.objects.all()} == {used.digest, "0"}


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
@given(at=st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_every_moment_lies_in_one_part_and_the_next_begins_where_it_ends(
    level: Level, at: datetime
) -> None:
    part = partitions.part_of(level, at)
    assert part.start <= at < part.end
    assert partitions.part_of(level, part.end) == partitions.Part(level, part.end)
    assert partitions.part_of(level, part.end - timedelta(microseconds=1)) == part
