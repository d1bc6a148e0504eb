"""The playground's socket: streams, stops, keeps everything, and only to its owner."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.backends.db import SessionStore
from django.urls import path

from dashboard.choices import DeploymentStatus, MessageStatus
from dashboard.consumers import answer
from dashboard.consumers.chat import SIGNED_OUT, ChatConsumer
from dashboard.gateway.upstream import close_session
from dashboard.models import Conversation, Message
from tests.dashboard.fake_head import FakeHead, running
from tests.dashboard.gateway_cast import make_deployment, make_replica, make_user
from tests.sockets import Closed, SocketClient

pytestmark = pytest.mark.django_db(transaction=True)
application = URLRouter([path("ws/chat", ChatConsumer.as_asgi())])


class Browser:
    """One tab's socket."""

    def __init__(self, user: User | AnonymousUser, **scope: Any) -> None:
        self.socket = SocketClient(application, "/ws/chat", user=user, **scope)

    async def say(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """Everything up to the first message of this type."""
        heard: list[dict[str, Any]] = []
        while not heard or heard[-1]["type"] != kind:
            heard.append(await self.socket.receive_json())
        return heard

    async def ask(self, text: str = "Hi", **fields: Any) -> None:
        await self.say(type="send", route="smol", text=text, **fields)


@asynccontextmanager
async def tab(user: User) -> AsyncIterator[Browser]:
    browser = Browser(user)
    assert await browser.socket.connect()
    try:
        yield browser
    finally:
        await browser.socket.disconnect(1001)
        await close_session()


def stage(head: FakeHead | None, **deployment: Any) -> User:
    row = make_deployment(**deployment)
    if head is not None:
        make_replica(row, head.port)
    return make_user()


async def saved() -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = await database_sync_to_async(_saved)()
    return rows


def _saved() -> list[tuple[str, str, str]]:
    return list(Message.objects.values_list("role", "content", "status"))


async def test_an_answer_is_streamed_measured_and_saved() -> None:
    async with running(FakeHead()) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            parameters = {"temperature": 0, "max_tokens": 9}
            await browser.ask("Say **hello**", system="Be brief.", parameters=parameters)
            heard = await browser.until("done")
    assert [message["type"] for message in heard[:3]] == ["conversation", "start", "delta"]
    assert heard[0]["title"] == "Say **hello**"
    assert "".join(m["text"] for m in heard if m["type"] == "delta") == "Hello wörld"
    done = heard[-1]
    assert done["status"] == "done"
    assert done["metrics"]["tokens"] == 3
    assert done["metrics"]["tokens_counted"] == "engine"
    assert done["metrics"]["prompt_tokens"] == 7
    assert done["metrics"]["finish_reason"] == "stop"
    assert "<p>Hello wörld</p>" in done["html"]
    assert head.bodies[0]["temperature"] == 0
    assert head.bodies[0]["max_tokens"] == 9
    assert head.bodies[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Say **hello**"},
    ]
    assert ("assistant", "Hello wörld", "done") in await saved()


async def test_thoughts_are_shown_apart_kept_and_not_sent_back() -> None:
    async with running(FakeHead(thoughts=("First I ", "think."))) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.ask("One")
            heard = await browser.until("done")
            await browser.ask("Two", conversation=heard[0]["id"])
            await browser.until("done")
    assert "".join(m["text"] for m in heard if m["type"] == "reasoning") == "First I think."
    assert "First I think." in heard[-1]["html"]
    assert "think" not in json.dumps(head.bodies[1])
    kept = await database_sync_to_async(
        lambda: Message.objects.filter(role="assistant").values_list("reasoning", flat=True)[0]
    )()
    assert kept == "First I think."


async def test_a_schema_that_is_no_json_is_refused_before_anything_is_saved() -> None:
    async with running(FakeHead()) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.ask(parameters={"answer_form": "json_schema", "answer_shape": "{"})
            refusal = (await browser.until("error"))[-1]
    assert "not valid JSON" in refusal["message"]
    assert await saved() == []


async def test_the_next_question_carries_the_conversation() -> None:
    async with running(FakeHead()) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.ask("One")
            conversation = (await browser.until("done"))[0]["id"]
            await browser.ask("Two", conversation=conversation)
            await browser.until("done")
    said = [message["content"] for message in head.bodies[1]["messages"]]
    assert said == ["One", "Hello wörld", "Two"]


async def test_stop_aborts_the_engine_and_keeps_text_and_metrics() -> None:
    async with running(FakeHead(hold_at=2)) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.ask()
            await head.wait(head.held)
            await browser.until("delta")
            await browser.say(type="stop")
            done = (await browser.until("done"))[-1]
            await head.wait(head.aborted)
    assert done["status"] == "stopped"
    assert done["metrics"]["tokens"] >= 1
    assert done["metrics"]["ttft_seconds"] > 0
    role, text, status = (await saved())[-1]
    assert (role, status) == ("assistant", "stopped")
    assert text.startswith("Hel")


async def test_closing_the_tab_aborts_the_engine_and_keeps_the_text() -> None:
    async with running(FakeHead(hold_at=1)) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.ask()
            await browser.until("delta")
        await head.wait(head.aborted)
    assert (await saved())[-1] == ("assistant", "Hel", "stopped")


async def test_a_head_that_dies_leaves_a_failed_message_with_its_text() -> None:
    async with running(FakeHead(hold_at=1, dies=True)) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.ask()
            await browser.until("delta")
            head.release.set()
            done = (await browser.until("done"))[-1]
    assert done["status"] == "failed"
    assert "smol stopped answering" in done["html"]
    assert (await saved())[-1] == ("assistant", "Hel", "failed")


async def test_a_deployment_that_is_not_ready_says_why() -> None:
    reason = "Rank 1 on node-b ran out of memory."
    user = await database_sync_to_async(stage)(None, status=DeploymentStatus.FAILED, reason=reason)
    async with tab(user) as browser:
        await browser.ask()
        done = (await browser.until("done"))[-1]
    assert done["status"] == "failed"
    assert reason in done["html"]


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("unsupported", "Not like this."),
        ("context_length_exceeded", "begin a new conversation"),
        ("queue_full", "try again in a moment"),
        ("no_chat_template", "it was made to continue a text, not to talk"),
        ("engine_error", "could not finish this answer: Not like this."),
    ],
)
async def test_the_heads_refusal_is_shown(code: str, shown: str) -> None:
    refusal = {"error": {"message": "Not like this.", "code": code}}
    async with running(FakeHead(refusal=(400, refusal))) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.ask()
            done = (await browser.until("done"))[-1]
    assert shown in done["html"]


async def test_again_replaces_the_last_answer() -> None:
    async with running(FakeHead()) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.ask("One")
            conversation = (await browser.until("done"))[0]["id"]
            await browser.say(type="again", route="smol", conversation=conversation)
            await browser.until("done")
    assert [content for _role, content, _status in await saved()] == ["One", "Hello wörld"]
    assert head.bodies[0]["messages"] == head.bodies[1]["messages"]


async def test_a_second_question_waits_for_the_first_answer() -> None:
    async with running(FakeHead(hold_at=1)) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.ask()
            await browser.until("delta")
            await browser.ask("Another")
            error = (await browser.until("error"))[-1]
    assert "on its way" in error["message"]
    assert len(await saved()) == 2


def somebody_elses() -> int:
    owner = make_user("bob")
    conversation = Conversation.objects.create(user=owner, title="Secret", route="smol")
    conversation.messages.create(role="user", content="secret", status=MessageStatus.DONE)
    return conversation.pk


@pytest.mark.parametrize("kind", ["send", "again"])
async def test_somebody_elses_conversation_does_not_exist(kind: str) -> None:
    async with running(FakeHead()) as head:
        user = await database_sync_to_async(stage)(head)
        pk = await database_sync_to_async(somebody_elses)()
        async with tab(user) as browser:
            text = {"text": "Hi"} if kind == "send" else {}
            await browser.say(type=kind, route="smol", conversation=pk, **text)
            error = (await browser.until("error"))[-1]
    assert "does not exist" in error["message"]
    assert not head.bodies


async def test_without_a_sign_in_the_socket_closes() -> None:
    browser = Browser(AnonymousUser())
    assert await browser.socket.connect()
    with pytest.raises(Closed) as closed:
        await browser.socket.receive()
    assert closed.value.code == SIGNED_OUT
    await browser.socket.disconnect()


@pytest.mark.parametrize("how", ["signed out", "closed account"])
async def test_an_open_tab_does_not_outlive_its_sign_in(how: str) -> None:
    user = await database_sync_to_async(stage)(None)
    session = SessionStore()
    await session.acreate()
    browser = Browser(user, session=session)
    assert await browser.socket.connect()
    if how == "signed out":
        await session.aflush()
    else:
        await User.objects.aupdate(is_active=False)
    await browser.ask("Am I still here?")
    assert "You were signed out." in (await browser.until("error"))[-1]["message"]
    with pytest.raises(Closed) as closed:
        await browser.socket.receive()
    assert closed.value.code == SIGNED_OUT
    assert await saved() == []


async def test_deleting_a_conversation_stops_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "KEEP_SECONDS", 0.05)
    async with running(FakeHead(hold_at=1)) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.ask()
            await browser.until("delta")
            await Conversation.objects.all().adelete()
            assert (await browser.until("done"))[-1]["status"] == "stopped"
            await head.wait(head.aborted)
            await browser.ask(conversation=1)
            refused = (await browser.until("error"))[-1]
            assert refused["message"] == "This conversation does not exist any more."
    assert await saved() == []


@pytest.mark.parametrize("junk", ['{"type": "fly"}', "[", '{"type": "send", "route": 3}'])
async def test_nonsense_is_answered_not_fatal(junk: str) -> None:
    async with running(FakeHead()) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.socket.send(junk)
            await browser.until("error")
            await browser.ask()
            await browser.until("done")


async def test_an_unforeseen_error_ends_the_answer_and_reaches_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(launch: str) -> list[dict[str, str | int]]:
        raise LookupError(launch)

    monkeypatch.setattr("dashboard.consumers.answer.answering_ranks", broken)
    async with running(FakeHead()) as head:
        user = await database_sync_to_async(stage)(head)
        async with tab(user) as browser:
            await browser.ask()
            done = (await browser.until("done"))[-1]
    assert done["status"] == "failed"
    assert "log says what" in done["html"]
    assert "LookupError" in caplog.text
