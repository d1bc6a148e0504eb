"""A panel that is asked to end leaves its answers to the one that takes its place."""

import asyncio
import signal

import pytest
from channels.db import database_sync_to_async

from dashboard import leaving
from dashboard.choices import MessageStatus
from dashboard.models import Message
from tests.dashboard.gateway_cast import make_deployment, make_replica, make_user
from tests.dashboard.test_chat_socket import tab
from tests.dashboard.test_gateway_resume import begin, expected, ids_of, staged, text_of
from tests.engine.head_world import MODEL, TOKEN, head_world, until


def test_a_signal_is_noted_and_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "_signals", set())
    passed: list[int] = []
    old = signal.signal(signal.SIGUSR1, lambda number, frame: passed.append(number))
    try:
        leaving.watch([signal.SIGUSR1])
        assert not leaving.asked()
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert leaving.asked()
    assert passed == [signal.SIGUSR1]


@pytest.mark.django_db(transaction=True)
async def test_a_program_comes_back_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged() as (world, _wire, client):
        answer = await begin(world, client)
        first = (await answer.content.readuntil(b"\n\n")).decode()
        monkeypatch.setattr(leaving, "_signals", {signal.SIGTERM})
        answer.close()
        await asyncio.sleep(0.3)
        monkeypatch.setattr(leaving, "_signals", set())
        await world.ranks[0].allow(None)
        last = {"Last-Event-ID": ids_of(first)[-1]}
        back = await client.get(f"/v1/streams/{answer.headers['X-Request-Id']}", headers=last)
        assert text_of(first + await back.text()) == await expected(world)
        assert world.engine.scheduler.counters.aborted == 0


@pytest.mark.django_db(transaction=True)
async def test_an_answer_in_the_playground_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async with head_world() as world:

        def stage() -> None:
            make_replica(make_deployment(name=MODEL), world.front.address.port, token=TOKEN)

        user = await database_sync_to_async(make_user)()
        await database_sync_to_async(stage)()
        async with tab(user) as browser:
            await world.ranks[0].allow(6)
            await browser.say(type="send", route=MODEL, text="Say something")
            await browser.until("delta")
            await until(lambda: world.ranks[0].answered >= 6, "the first tokens")
            monkeypatch.setattr(leaving, "_signals", {signal.SIGTERM})
        await asyncio.sleep(0.3)
        assert world.engine.scheduler.counters.aborted == 0
        status = await Message.objects.values_list("status", flat=True).aget(role="assistant")
        assert status == MessageStatus.STREAMING
