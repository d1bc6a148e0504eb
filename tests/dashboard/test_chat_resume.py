"""An answer in the playground outlives the connection to its head and its writer's process."""

from datetime import timedelta

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from dashboard.choices import MessageRole, MessageStatus
from dashboard.gateway.client import chat_request
from dashboard.models import Conversation, Message, Replica
from tests.dashboard.gateway_cast import make_deployment, make_replica, make_user
from tests.dashboard.test_chat_socket import tab
from tests.dashboard.wire import wire_to
from tests.engine.cut_streams import CHAT, journaled
from tests.engine.head_world import MODEL, TOKEN, HeadWorld, head_world, until

pytestmark = pytest.mark.django_db(transaction=True)
PROMPT = [{"role": "user", "content": "Say something"}]


def _stage(port: int) -> User:
    make_replica(make_deployment(name=MODEL), port, token=TOKEN)
    return make_user()


def _answer() -> tuple[str, str]:
    return Message.objects.values_list("content", "status").get(role=MessageRole.ASSISTANT)


async def expected(world: HeadWorld) -> str:
    _status, whole = await world.chat(messages=PROMPT, max_tokens=25)
    return str(whole["choices"][0]["message"]["content"])


async def test_a_cut_connection_is_a_pause_in_the_answer() -> None:
    async with head_world() as world, wire_to(world.front.address.port) as wire:
        user = await database_sync_to_async(_stage)(wire.port)
        async with tab(user) as browser:
            await world.ranks[0].allow(6)
            parameters = {"max_tokens": 25}
            await browser.say(
                type="send", route=MODEL, text=PROMPT[0]["content"], parameters=parameters
            )
            await browser.until("delta")
            wire.cut()
            await browser.until("paused")
            await world.ranks[0].allow(None)
            await browser.until("resumed")
            done = (await browser.until("done"))[-1]
        assert done["status"] == "done"
        said = await expected(world)
        assert await database_sync_to_async(_answer)() == (said, "done")


def _left_behind(user: User) -> int:
    """A conversation whose answer was being written when the panel's process died."""
    conversation = Conversation.objects.create(user=user, route=MODEL)
    conversation.messages.create(role=MessageRole.USER, content=PROMPT[0]["content"])
    conversation.messages.create(
        role=MessageRole.ASSISTANT,
        status=MessageStatus.STREAMING,
        content="What",
        stream="chat_1",
        launch=Replica.objects.get().launch,
    )
    earlier = timezone.now() - timedelta(seconds=8)
    Conversation.objects.filter(pk=conversation.pk).update(updated=earlier)
    return conversation.pk


async def test_a_page_that_comes_back_gets_the_rest() -> None:
    async with head_world() as world:
        user = await database_sync_to_async(_stage)(world.front.address.port)
        body = chat_request(MODEL, {"messages": PROMPT, "max_tokens": 25}, "chat_1").body
        await world.ranks[0].allow(6)
        async with world.http.post(CHAT, data=body, headers=journaled("chat_1")) as lost:
            await lost.content.readuntil(b"\n\n")
            lost.close()
        await until(lambda: world.ranks[0].answered >= 6, "the first tokens")
        conversation = await database_sync_to_async(_left_behind)(user)
        async with tab(user) as browser:
            await browser.say(type="follow", conversation=conversation)
            start = (await browser.until("start"))[-1]
            await browser.until("delta")
            await world.ranks[0].allow(None)
            done = (await browser.until("done"))[-1]
        assert start["message"] == done["message"]
        said = await expected(world)
        assert await database_sync_to_async(_answer)() == (said, "done")
