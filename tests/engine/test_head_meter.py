"""What a head counts of its requests: each once, none of its own, nothing where nothing was."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.request import Event, FinishReason, Request
from engine.head.meter import FIRST_TOKEN_BOUNDS, Meter
from engine.head.windows import Busy, Histogram
from tests.engine.head_world import head_world, until


def request(number: int = 1, prompt: int = 4, arrived: float = 0.0) -> Request:
    made = Request(id=f"r{number}", prompt=[1] * prompt, max_tokens=9, arrived_at=arrived)
    made.admitted_at, made.cached_tokens = arrived + 0.5, 1
    return made


def drawn(of: Request, now: float, finish: FinishReason | None = None) -> Event:
    of.accept(7, now)
    of.finish = finish
    return Event(of, 7, finish)


def test_a_request_is_in_every_histogram_once() -> None:
    meter, one = Meter(), request()
    for now in (2.0, 2.25, 2.5):
        meter.record([drawn(one, now, "stop" if now == 2.5 else None)], now)
    meter.ended(one, 3.0)
    assert (meter.first_token.stats().counts[-1], meter.first_token.sum) == (1, 2.0)
    assert (meter.inter_token.stats().counts[-1], meter.inter_token.sum) == (2, 0.5)
    assert (meter.queue.stats().counts[-1], meter.queue.sum) == (1, 0.5)
    assert (meter.duration.stats().counts[-1], meter.duration.sum) == (1, 2.5)
    assert meter.prefix_hits == 0.25


def test_an_aborted_request_has_no_duration() -> None:
    meter, one = Meter(), request()
    meter.record([drawn(one, 1.0)], 1.0)
    one.finish = "abort"
    meter.ended(one, 2.0)
    assert meter.duration.stats().counts[-1] == 0
    assert meter.first_token.stats().counts[-1] == 1


def test_what_began_under_another_head_has_neither_first_token_nor_duration() -> None:
    meter, one = Meter(), request()
    one.accept(5, 0.0)
    meter.record([drawn(one, 1.0, "length")], 1.0)
    meter.ended(one, 1.0)
    assert meter.first_token.stats().counts[-1] == meter.duration.stats().counts[-1] == 0


def test_a_meter_forgets_who_has_ended() -> None:
    meter = Meter()
    for number in range(20):
        one = request(number)
        meter.record([drawn(one, 1.0, "stop")], 1.0)
        meter.ended(one, 1.0)
    assert not meter._last


@given(st.lists(st.floats(0, 1e4, allow_nan=False)))
def test_bars_grow_and_the_last_counts_everything(values: list[float]) -> None:
    histogram = Histogram(FIRST_TOKEN_BOUNDS)
    for value in values:
        histogram.add(value)
    stats = histogram.stats()
    assert list(stats.counts) == sorted(stats.counts)
    assert stats.counts[-1] == len(values)
    for bound, count in zip(stats.bounds, stats.counts, strict=False):
        assert count == sum(value <= bound for value in values)
    assert stats.sum == pytest.approx(sum(values))


def test_the_busy_share_is_of_the_last_second_alone() -> None:
    now = 100.0
    busy = Busy(1.0, lambda: now)
    assert busy.share() == 0
    busy.begin()
    now += 0.25
    busy.begin()
    busy.end()
    assert busy.share() == pytest.approx(0.25)
    now += 0.25
    busy.begin()
    now += 0.25
    assert busy.share() == pytest.approx(0.5)
    now += 3.0
    assert busy.share() == 1
    busy.end()
    now += 1.0
    assert busy.share() == 0


async def test_a_head_tells_its_histograms_and_how_its_requests_ended() -> None:
    async with head_world() as world:
        before = await world.stats()
        await world.chat(max_tokens=10)
        await until(lambda: world.engine.meter.busy.share() == 0, "an idle second")
        stats = await world.stats()
    assert before.endings == {"stop": 0, "length": 0, "abort": 0, "error": 0}
    assert before.batch_rows is None
    assert before.prefix_hits is None
    assert stats.endings["length"] == 1
    for histogram, count in (
        (stats.first_token, 1),
        (stats.inter_token, 9),
        (stats.queue, 1),
        (stats.duration, 1),
    ):
        assert histogram is not None
        assert histogram.counts[-1] == count


async def test_steps_in_flight_are_busy_and_have_rows() -> None:
    async with head_world() as world:
        await world.ranks[0].allow(3)
        body = {"model": "small", "prompt": "x", "max_tokens": 99, "stream": True}
        async with world.http.post("/v1/completions", json=body):
            await until(lambda: world.ranks[0].received >= 4, "the fourth step")
            began = time.monotonic()
            await until(lambda: time.monotonic() - began > 0.1, "a while")
            stats = await world.stats()
            await world.ranks[0].allow(None)
    assert stats.batch_rows == 1
    assert stats.busy is not None
    assert stats.busy > 0
