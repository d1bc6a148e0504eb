"""Telemetry reaches the database once, whole, and honest about what is missing."""

import asyncio
import logging
from collections.abc import Sequence

import pytest
from asgiref.sync import sync_to_async
from django.db import DataError, OperationalError

from monitoring.live import writer as writing
from monitoring.live.frames import Frame
from monitoring.live.ingest import Intake
from monitoring.live.writer import Writer
from monitoring.models import Layout, Reading
from monitoring.packing import Packer
from monitoring.samples import Sample
from monitoring.storage.store import store
from tests.monitoring.cast import NO_GPU, engine_samples, frame_of, make_node, node_samples, now

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("no_connection_left", "nothing_live_left"),
]
SECONDS = 10.0

amake_node = sync_to_async(make_node)


class Agent:
    """One connection, and the numbers of what it was told is taken."""

    def __init__(self, node: int) -> None:
        self.intake = Intake(node)
        self._packer = Packer()
        self.taken: list[int] = []

    def tell(self, seq: int, at: float, samples: Sequence[Sample]) -> Frame:
        packed = self._packer.pack(samples)
        return self.intake.take(
            seq,
            at,
            [layout for layout, _numbers in packed],
            [(layout.number, numbers) for layout, numbers in packed],
        )

    async def until_taken(self, *seqs: int) -> None:
        async with asyncio.timeout(SECONDS):
            while not set(seqs) <= set(self.taken):
                self.taken += await self.intake.taken()


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "SPACING_SECONDS", 0.01)
    monkeypatch.setattr(writing, "FIRST_DELAY", 0.01)


async def test_a_frame_is_stored_one_row_a_subject() -> None:
    node = await amake_node()
    agent = Agent(node.pk)
    frame = agent.tell(1, now(), [*node_samples(), *engine_samples("abc")])
    await agent.until_taken(1)
    assert frame.stored == await Reading.objects.acount() == 4
    subjects = [row.subject async for row in Layout.objects.order_by("subject")]
    assert subjects == ["launch:abc", "launch:abc:rank0", "launch:abc:rank1", "node"]


async def test_sending_a_frame_again_changes_nothing() -> None:
    node, at = await amake_node(), now()
    for connected in range(2):
        agent = Agent(node.pk)
        agent.tell(1, at, node_samples())
        await agent.until_taken(1)
        assert await Reading.objects.acount() == 1, f"after connection {connected}"


async def test_an_absent_value_is_stored_as_null_with_its_reason() -> None:
    node = await amake_node()
    agent = Agent(node.pk)
    agent.tell(1, now(), node_samples())
    await agent.until_taken(1)
    reading = await Reading.objects.select_related("layout").aget()
    stored = dict(zip([f[0] for f in reading.layout.fields], reading.numbers, strict=True))
    assert stored["cpu_utilization_ratio"] == 0.25
    assert stored["gpu_utilization_ratio"] is None
    reasons = {f[0]: f[5] for f in reading.layout.fields if f[3] == "unavailable"}
    assert reasons == {"gpu_utilization_ratio": NO_GPU}


async def test_a_second_frame_shares_the_layout_of_the_first() -> None:
    node, at = await amake_node(), now()
    agent = Agent(node.pk)
    for second in range(3):
        agent.tell(second, at + second, node_samples(second / 10))
    await agent.until_taken(0, 1, 2)
    assert await Reading.objects.acount() == 3
    assert await Layout.objects.acount() == 1


async def test_frames_arriving_together_share_a_batch_and_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agents = [Agent((await amake_node(f"box-{index}")).pk) for index in range(5)]
    batches: list[int] = []

    def counting(frames: Sequence[Frame]) -> None:
        batches.append(len(frames))
        store(frames)

    monkeypatch.setattr(writing, "store", counting)
    for seq in range(4):
        for agent in agents:
            agent.tell(seq, now(), node_samples())
    assert [await agent.intake.taken() for agent in agents] == [[0, 1, 2, 3]] * 5
    assert batches == [20]


async def test_nothing_is_taken_that_is_not_stored_and_it_is_stored_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = Agent((await amake_node()).pk)
    tries = 0

    def away(frames: Sequence[Frame]) -> None:
        nonlocal tries
        tries += 1
        if tries <= 3:
            raise OperationalError("the server closed the connection unexpectedly")
        store(frames)

    monkeypatch.setattr(writing, "store", away)
    agent.tell(0, now(), node_samples())
    agent.tell(1, now(), node_samples())
    await agent.until_taken(0, 1)
    assert tries == 4
    assert await Reading.objects.acount() == 2


async def test_more_than_memory_should_hold_is_left_to_the_agents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They keep what is not taken, and send it again."""

    def away(frames: Sequence[Frame]) -> None:
        raise OperationalError("no database")

    monkeypatch.setattr(writing, "store", away)
    monkeypatch.setattr(writing, "MOST_NUMBERS", 12)
    agent, at = Agent((await amake_node()).pk), now()
    for seq in range(10):
        agent.tell(seq, at + seq, node_samples())  # four numbers each
    monkeypatch.setattr(writing, "store", store)
    await agent.until_taken(0, 1, 2)
    assert await Reading.objects.acount() == 3
    agent.tell(3, at + 3, node_samples())
    await agent.until_taken(3)
    assert sorted(agent.taken) == [0, 1, 2, 3]


async def test_a_frame_that_cannot_be_stored_costs_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent, at = Agent((await amake_node()).pk), now()

    def picky(frames: Sequence[Frame]) -> None:
        if any(frame.seq == 1 for frame in frames):
            raise DataError("out of range")
        store(frames)

    monkeypatch.setattr(writing, "store", picky)
    for seq in range(3):
        agent.tell(seq, at + seq, node_samples())
    await agent.until_taken(0, 1, 2)
    assert await Reading.objects.acount() == 2


async def test_the_past_is_stored_behind_the_present(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_PAST", 2)
    agent, at = Agent((await amake_node()).pk), now()
    stored: list[int] = []

    def noting(frames: Sequence[Frame]) -> None:
        stored.extend(frame.seq for frame in frames)
        store(frames)

    monkeypatch.setattr(writing, "store", noting)
    for seq in range(5):
        agent.tell(seq, at - 600 + seq, node_samples())
    agent.tell(5, at, node_samples())
    await agent.until_taken(*range(6))
    assert stored == [5, 0, 1, 2, 3, 4]


async def test_two_connections_are_answered_for_their_own() -> None:
    writer, heard = Writer(), {"a": list[int](), "b": list[int]()}
    node, at = (await amake_node()).pk, now()
    done = asyncio.Event()

    def settled(name: str, frames: Sequence[Frame]) -> None:
        heard[name] += [frame.seq for frame in frames]
        if sum(map(len, heard.values())) == 3:
            done.set()

    def of_a(frames: Sequence[Frame]) -> None:
        settled("a", frames)

    def of_b(frames: Sequence[Frame]) -> None:
        settled("b", frames)

    for seq, answer in ((1, of_a), (2, of_b), (3, of_a)):
        writer.put(await sync_to_async(frame_of)(node, seq, at + seq, node_samples()), answer)
    await asyncio.wait_for(done.wait(), SECONDS)
    assert heard == {"a": [1, 3], "b": [2]}
    await writer.close()


async def test_a_removed_node_is_refused_and_the_others_are_stored() -> None:
    node, gone = await amake_node(), await amake_node("gone")
    removed = gone.pk
    await gone.adelete()
    frames = [frame_of(pk, 1, now(), node_samples()) for pk in (node.pk, removed)]
    await sync_to_async(store)(frames)
    assert [frame.stored for frame in frames] == [1, 0]
    assert "not in the fleet" in frames[1].refused[0]


async def test_a_layout_removed_meanwhile_is_made_again() -> None:
    node, at = await amake_node(), now()
    first, second = (frame_of(node.pk, s, at + s, node_samples()) for s in (1, 2))
    await sync_to_async(store)([first])
    await Reading.objects.all().adelete()
    await Layout.objects.all().adelete()
    await sync_to_async(store)([second])
    assert second.stored == 1
    assert await Layout.objects.acount() == 1


async def test_a_frame_with_an_impossible_time_is_refused_for_good(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = Agent((await amake_node()).pk)
    with caplog.at_level(logging.WARNING, "monitoring.live.ingest"):
        agent.tell(1, float("nan"), node_samples())
        agent.tell(2, float("inf"), node_samples())
        await agent.until_taken(1, 2)
    assert await Reading.objects.acount() == 0
    assert len(caplog.records) == 1, "once a minute, not every second"


def test_removing_a_node_leaves_nothing_that_could_be_shown() -> None:
    node = make_node()
    store([frame_of(node.pk, 1, now(), node_samples())])
    node.delete()
    assert not Layout.objects.exists()
