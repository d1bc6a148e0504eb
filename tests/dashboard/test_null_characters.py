"""The one character that Postgres refuses breaks nothing, wherever a person or a model puts it."""

import json

import pytest
from channels.db import database_sync_to_async
from channels.routing import URLRouter
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import path

from dashboard.consumers.chat import ChatConsumer
from dashboard.gateway.upstream import close_session
from dashboard.models import ApiKey, Conversation, Message
from tests.dashboard.fake_head import FakeHead, running
from tests.dashboard.gateway_cast import make_deployment, make_key, make_replica, make_user
from tests.dashboard.pages_cast import operator
from tests.sockets import SocketClient

__all__ = ["operator"]
pytestmark = pytest.mark.django_db(transaction=True)
sockets = URLRouter([path("ws/chat", ChatConsumer.as_asgi())])


@pytest.mark.parametrize("address", ["/chat/conversations/?q=a%00b", "/deployments/new/?model=%00"])
def test_in_an_address(operator: Client, address: str) -> None:
    assert operator.get(address).status_code == 200


def test_in_the_name_of_a_key(operator: Client) -> None:
    assert operator.post("/keys/", {"name": "re\x00port"}).status_code == 200
    assert ApiKey.objects.get().name == "report"


def test_in_the_title_of_a_conversation(operator: Client) -> None:
    conversation = Conversation.objects.create(user=User.objects.get(), title="Old", route="smol")
    operator.post(f"/chat/{conversation.pk}/rename/", {"title": "a\x00b"})
    conversation.refresh_from_db()
    assert conversation.title == "ab"


def test_in_the_model_a_program_asks_for() -> None:
    headers = {"Authorization": f"Bearer {make_key(make_user())[1]}"}
    assert Client(headers=headers).get("/v1/models/a%00b").status_code == 404


async def test_in_the_body_a_program_sends() -> None:
    key = await database_sync_to_async(lambda: make_key(make_user())[1])()
    body = json.dumps({"model": "a\x00b", "messages": []})
    answer = await AsyncClient().post(
        "/v1/chat/completions",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 404
    await close_session()


def _stage(port: int) -> User:
    make_replica(make_deployment(), port)
    return make_user()


async def test_in_a_question_and_in_its_answer() -> None:
    async with running(FakeHead(words=["A\x00", "B"])) as head:
        user = await database_sync_to_async(_stage)(head.port)
        socket = SocketClient(sockets, "/ws/chat", user=user)
        assert await socket.connect()
        question = {"type": "send", "route": "smol", "text": "Hi\x00!", "system": "Be\x00brief"}
        await socket.send(json.dumps(question))
        while (heard := await socket.receive_json())["type"] != "done":
            assert heard["type"] != "error", heard
        await socket.disconnect(1001)
        await close_session()
    said = await database_sync_to_async(lambda: set(Message.objects.values_list("content")))()
    assert said == {("Hi!",), ("Bebrief",), ("AB",)}


async def test_in_the_route_of_a_question() -> None:
    user = await database_sync_to_async(make_user)()
    socket = SocketClient(sockets, "/ws/chat", user=user)
    assert await socket.connect()
    for route in ("a\x00", "", "x" * 81, "a/b"):
        await socket.send(json.dumps({"type": "send", "route": route, "text": "Hi"}))
        assert (await socket.receive_json())["type"] == "error"
    await socket.disconnect(1001)
    assert not await Conversation.objects.aexists()
