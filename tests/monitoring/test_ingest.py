"""Telemetry reaches the database once, whole, and honest about what is missing."""

import asyncio
import logging
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.utils import timezone

from monitoring.frames import Frame, check_frame
from monitoring.ingest import Writer, ingest
from monitoring.models import Layout, Reading
from monitoring.retention import prune
from monitoring.store import store
from tests.monitoring.cast import NO_GPU, engine_samples, make_node, node_samples, now

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("no_connection_left"),
]

amake_node = sync_to_async(make_node)


async def test_a_frame_is_stored_one_row_a_subject() -> None:
    node = await amake_node()
    result = await ingest(node.pk, 1, now(), [*node_samples(), *engine_samples("abc")])
    assert result.stored == await Reading.objects.acount() == 4
    subjects = [row.subject async for row in Layout.objects.order_by("subject")]
    assert subjects == ["launch:abc", "launch:abc:rank0", "launch:abc:rank1", "node"]


async def test_sending_a_frame_again_changes_nothing() -> None:
    node, at = await amake_node(), now()
    await ingest(node.pk, 1, at, node_samples())
    again = await ingest(node.pk, 1, at, node_samples())
    assert again.stored == 0
    assert await Reading.objects.acount() == 1


async def test_an_absent_value_is_stored_as_null_with_its_reason() -> None:
    node = await amake_node()
    await ingest(node.pk, 1, now(), node_samples())
    reading = await Reading.objects.select_related("layout").aget()
    stored = dict(zip([f[0] for f in reading.layout.fields], reading.numbers, strict=True))
    assert stored["cpu_utilization_ratio"] == 0.25
    assert stored["gpu_utilization_ratio"] is None
    reasons = {f[0]: f[5] for f in reading.layout.fields if f[3] == "unavailable"}
    assert reasons == {"gpu_utilization_ratio": NO_GPU}


async def test_a_second_frame_shares_the_layout_of_the_first() -> None:
    node, at = await amake_node(), now()
    for second in range(3):
        await ingest(node.pk, second, at + second, node_samples(second / 10))
    assert await Reading.objects.acount() == 3
    assert await Layout.objects.acount() == 1


async def test_frames_arriving_together_share_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [await amake_node(f"box-{index}") for index in range(20)]
    batches: list[int] = []

    def counting(frames: tuple[Frame, ...]) -> None:
        batches.append(len(frames))
        store(frames)

    monkeypatch.setattr("monitoring.ingest.store", counting)
    writer, arrived = Writer(), timezone.now()
    frames = [check_frame(n.pk, 1, now(), node_samples(), arrived) for n in nodes]
    await asyncio.gather(*(writer.write(frame) for frame in frames))
    assert all(frame.stored == 1 for frame in frames)
    assert sum(batches) == 20
    assert len(batches) < 20


async def test_a_removed_node_is_refused_and_the_others_are_stored() -> None:
    node, gone = await amake_node(), await amake_node("gone")
    removed = gone.pk
    await gone.adelete()
    arrived = timezone.now()
    frames = [check_frame(pk, 1, now(), node_samples(), arrived) for pk in (node.pk, removed)]
    await sync_to_async(store)(frames)
    assert [frame.stored for frame in frames] == [1, 0]
    assert "not in the fleet" in frames[1].refused[0]


async def test_a_layout_removed_meanwhile_is_made_again() -> None:
    node, at = await amake_node(), now()
    await ingest(node.pk, 1, at, node_samples())
    await Reading.objects.all().adelete()
    await Layout.objects.all().adelete()
    result = await ingest(node.pk, 2, at + 1, node_samples())
    assert result.stored == 1
    assert await Layout.objects.acount() == 1


async def test_a_clock_that_is_far_off_is_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    node = await amake_node()
    with caplog.at_level(logging.WARNING, "monitoring.ingest"):
        first = await ingest(node.pk, 1, now() - 60, node_samples())
        await ingest(node.pk, 2, now() - 59, node_samples())
    assert first.skew_seconds is not None
    assert 55 < first.skew_seconds < 120
    assert len(caplog.records) == 1


async def test_a_frame_with_an_impossible_time_is_refused() -> None:
    node = await amake_node()
    result = await ingest(node.pk, 1, float("nan"), node_samples())
    assert result.stored == 0
    assert result.refused


def test_removing_a_node_removes_its_readings() -> None:
    node = make_node()
    store([check_frame(node.pk, 1, now(), node_samples(), timezone.now())])
    node.delete()
    assert not Reading.objects.exists()
    assert not Layout.objects.exists()


def test_old_readings_and_unused_layouts_are_pruned() -> None:
    node = make_node()
    arrived = timezone.now()
    store([check_frame(node.pk, 1, now() - 90_000, engine_samples("old"), arrived)])
    store([check_frame(node.pk, 2, now(), node_samples(), arrived)])
    Layout.objects.update(created=timezone.now() - timedelta(days=2))
    assert prune() == 4
    assert [layout.subject for layout in Layout.objects.all()] == ["node"]
    assert Reading.objects.count() == 1


def test_a_new_layout_survives_pruning_until_its_first_reading() -> None:
    node = make_node()
    store([check_frame(node.pk, 1, now(), node_samples(), timezone.now())])
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM monitoring_reading")
    prune()
    assert Layout.objects.count() == 1
