"""Several web processes: whoever takes a reading in, every browser of each sees it, and once."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis.asyncio
from django.conf import settings

from monitoring.live import relay as relays
from monitoring.live.desk import Live
from monitoring.live.frames import Frame
from monitoring.live.relay import Relay
from monitoring.live.spots import Spot, spots
from tests.engine.agents import until
from tests.monitoring.cast import engine_samples, frame_of, node_samples, now

SECONDS = 10.0


class Process:
    """A web process whose hub is this list."""

    def __init__(self) -> None:
        self.relay = Relay()
        self.heard: list[Spot] = []
        self.filled: set[int] = set()
        self._listening = asyncio.create_task(
            self.relay.listen(self.heard.extend, self.filled.update)
        )

    def show(self, frame: Frame) -> None:
        self.relay.send(spots(frame))

    async def close(self) -> None:
        self._listening.cancel()
        await asyncio.wait({self._listening})
        await self.relay.close()


@pytest.fixture
async def valkey() -> AsyncIterator[Any]:
    client: Any = redis.asyncio.Redis.from_url(settings.REDIS_URL)
    yield client
    await client.aclose()


@pytest.fixture
async def both(valkey: Any) -> AsyncIterator[tuple[Process, Process]]:
    before = await listeners(valkey)
    processes = Process(), Process()
    async with asyncio.timeout(SECONDS):
        while await listeners(valkey) < before + 2:
            await asyncio.sleep(0.01)
    yield processes
    for process in processes:
        await process.close()


async def listeners(valkey: Any) -> int:
    ((_channel, count),) = await valkey.pubsub_numsub(relays.CHANNEL)
    return int(count)


async def test_another_process_hears_a_reading_and_its_own_does_not_hear_it_twice(
    both: tuple[Process, Process],
) -> None:
    here, there = both
    frame = frame_of(3, 1, now(), [*node_samples(), *engine_samples("abc")])
    here.show(frame)
    await until(lambda: len(there.heard) == 4, "the reading elsewhere")
    told = {spot.topic: spot for spot in there.heard}
    assert set(told) == {"3/node", "launch:abc", "launch:abc:rank0", "launch:abc:rank1"}
    assert told["3/node"].numbers == frame.readings[0].numbers
    assert told["3/node"].layout.fields == frame.readings[0].fields
    assert here.heard == []


async def test_who_comes_later_learns_what_the_numbers_mean(
    both: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = both
    here.show(frame_of(3, 1, now(), node_samples()))
    await until(lambda: bool(there.heard), "the first reading")
    late = Process()
    monkeypatch.setattr(relays, "TELL_AGAIN_SECONDS", 0.0)
    seq = 1

    def heard_late() -> bool:
        nonlocal seq
        seq += 1
        here.show(frame_of(3, seq, now(), node_samples()))
        return bool(late.heard)

    await until(heard_late, "a reading with its layout")
    await late.close()


async def test_a_lost_connection_to_valkey_is_made_again(
    both: tuple[Process, Process], valkey: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relays, "RETRY_SECONDS", 0.01)
    here, there = both
    await valkey.client_kill_filter(_type="pubsub")
    await valkey.client_kill_filter(_type="normal", skipme=True)
    seq = 0

    def heard() -> bool:
        nonlocal seq
        seq += 1
        here.show(frame_of(3, seq, now(), node_samples()))
        return bool(there.heard)

    await until(heard, "readings again")


async def test_a_past_that_was_filled_in_is_told_to_all(both: tuple[Process, Process]) -> None:
    here, there = both
    here.relay.send_filled({7, 8})
    await until(lambda: there.filled == {7, 8}, "the news elsewhere")


async def test_without_valkey_a_process_still_shows_its_own(
    monkeypatch: pytest.MonkeyPatch, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    monkeypatch.setattr(relays, "BATCH_SECONDS", 0.0)
    here = Live()
    for seq in range(3):
        here.relay.send(spots(frame_of(3, seq, now(), node_samples())))
        await until(lambda: not vars(here.relay)["_spots"], "the reading given up")
    await here.close()
    assert len([r for r in caplog.records if "do not reach" in r.message]) == 1
