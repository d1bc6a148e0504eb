"""Signed-in browsers hear what changed; nobody else does."""

from collections.abc import Callable
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.test import Client

from dashboard import lifecycle
from dashboard.asgi import application
from dashboard.consumers import events
from dashboard.errors import StatusConflict
from monitoring.live import consumers
from tests.dashboard.fleet_cast import Worker, fleet, make_deployment, worker
from tests.sockets import Closed, SocketClient

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)

HOST = (b"host", b"panel.example")


def session_cookie() -> bytes:
    client = Client()
    client.force_login(get_user_model().objects.create_user("someone"))
    name = settings.SESSION_COOKIE_NAME
    return f"{name}={client.cookies[name].value}".encode()


async def browser(
    origin: bytes = b"http://panel.example", path: str = "/ws/events"
) -> SocketClient:
    cookie = await database_sync_to_async(session_cookie)()
    headers = [HOST, (b"origin", origin), (b"cookie", cookie)]
    return SocketClient(application, path, headers)


async def until(socket: SocketClient, **wanted: Any) -> dict[str, Any]:
    while True:
        event: dict[str, Any] = await socket.receive_json()
        if wanted.items() <= event.items():
            return event


async def test_a_browser_hears_of_changes_and_of_the_log_it_watches(worker: Worker) -> None:
    async with fleet(worker) as cast:
        socket = await browser()
        assert await socket.connect()
        await socket.send(f'{{"watch": {{"deployment": {cast.deployment.pk}}}}}')
        await cast.deploy()
        await until(socket, kind="deployment", id=cast.deployment.pk)
        launch = cast.a.desired.processes[0].launch
        await cast.a.log(f"{launch}:head", "hello")
        event = await until(socket, kind="log", source="head")
        assert event == {
            "kind": "log",
            "id": cast.deployment.pk,
            "source": "head",
            "lines": ["hello"],
        }
        await socket.disconnect()


async def test_a_new_node_is_announced(worker: Worker) -> None:
    socket = await browser()
    assert await socket.connect()
    node, _ = await database_sync_to_async(lifecycle.create_node)("box", "10.0.0.1")
    assert await until(socket, kind="node") == {"kind": "node", "id": node.pk}
    await socket.disconnect()


async def test_who_is_not_signed_in_is_sent_away(worker: Worker) -> None:
    socket = SocketClient(application, "/ws/events", [HOST])
    assert await socket.connect()
    with pytest.raises(Closed) as closed:
        await socket.receive()
    assert closed.value.code == events.SIGNED_OUT
    await socket.disconnect()


def sign_out() -> None:
    Session.objects.all().delete()


def close_account() -> None:
    get_user_model().objects.update(is_active=False)


def change_password() -> None:
    user = get_user_model().objects.get()
    user.set_password("another")
    user.save()


@pytest.mark.parametrize("end", [sign_out, close_account, change_password])
@pytest.mark.parametrize("path", ["/ws/events", "/ws/telemetry"])
async def test_whoever_is_signed_out_is_told_nothing_more(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, path: str, end: Callable[[], None]
) -> None:
    monkeypatch.setattr("monitoring.visitors.LOOK_SECONDS", 0.01)
    socket = await browser(path=path)
    assert await socket.connect()
    await database_sync_to_async(end)()
    with pytest.raises(Closed) as closed:
        await socket.receive()
    assert closed.value.code in (events.SIGNED_OUT, consumers.SIGNED_OUT)
    await socket.disconnect()


async def test_another_sites_page_is_refused(worker: Worker) -> None:
    socket = await browser(origin=b"http://evil.example")
    assert not await socket.connect()


@pytest.mark.parametrize("message", ["", "[]", '{"watch": 7}'])
async def test_nonsense_closes_the_socket(worker: Worker, message: str) -> None:
    socket = await browser()
    assert await socket.connect()
    await socket.send(message)
    with pytest.raises(Closed):
        await socket.receive()
    await socket.disconnect()


async def test_what_is_not_committed_is_not_announced(worker: Worker) -> None:
    deployment = await database_sync_to_async(make_deployment)(status="ready")
    socket = await browser()
    assert await socket.connect()
    with pytest.raises(StatusConflict):
        await database_sync_to_async(lifecycle.request_deploy)(deployment, "someone")
    assert await socket.nothing_arrives()
    await socket.disconnect()


async def test_an_unknown_socket_is_refused() -> None:
    assert not await SocketClient(application, "/ws/nowhere", [HOST]).connect()
