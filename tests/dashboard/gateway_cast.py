"""The cast of the gateway's tests: a user with a key, a deployment, the panel on a real port."""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import uvicorn
from django.contrib.auth.models import User

from dashboard.asgi import application
from dashboard.choices import DeploymentStatus, ReplicaStatus
from dashboard.gateway.upstream import close_session
from dashboard.models import ApiKey, Deployment, Model, Node, Replica
from tests.dashboard.fake_head import TOKEN, FakeHead

SHAPE = {
    "architecture": "llama",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_layers": 30,
    "num_heads": 9,
    "num_kv_heads": 3,
    "head_dim": 64,
    "vocab_size": 49152,
    "context_length": 2048,
    "rope": {"theta": 10000.0, "dimensions": 64},
    "rms_norm_eps": 1e-5,
    "tie_embeddings": True,
}
START_SECONDS = 10.0


def make_user(name: str = "ada", **fields: Any) -> User:
    """Without a password: hashing one takes longer than most of these tests."""
    return User.objects.create(username=name, **fields)


def make_key(user: User) -> tuple[ApiKey, str]:
    key = ApiKey(user=user, name="tests")
    secret = key.issue()
    key.save()
    return key, secret


def make_deployment(
    name: str = "smol", status: str = DeploymentStatus.READY, **fields: Any
) -> Deployment:
    model, _made = Model.objects.get_or_create(
        name="smollm2",
        defaults={
            "path": "/models/smollm2.gguf",
            "revision": "r1",
            "size_bytes": 1,
            "parameters": 1,
            "config": SHAPE,
        },
    )
    return Deployment.objects.create(name=name, model=model, status=status, wanted=True, **fields)


def make_replica(
    deployment: Deployment, port: int, status: str = ReplicaStatus.READY, token: str = TOKEN
) -> Replica:
    node, _made = Node.objects.get_or_create(
        name="node-a", defaults={"address": "127.0.0.1", "token_hash": "x"}
    )
    return Replica.objects.create(
        deployment=deployment,
        launch=secrets.token_hex(8),
        token=token,
        config={"plan": {"tp": 2, "pp": 1}},
        head_node=node,
        host="127.0.0.1",
        http_port=port,
        control_port=1,
        status=status,
    )


def stage(head: FakeHead | None, **deployment: Any) -> str:
    """A user, a deployment answered by `head` and the secret of an API key that may ask it."""
    _key, secret = make_key(make_user())
    row = make_deployment(**deployment)
    if head is not None:
        make_replica(row, head.port)
    return secret


@asynccontextmanager
async def panel(secret: str = "") -> AsyncIterator[aiohttp.ClientSession]:
    """The real ASGI application on a free port, and a client that carries the key."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, lifespan="auto", log_config=None, ws="none")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        async with asyncio.timeout(START_SECONDS):
            while not server.started:
                await asyncio.sleep(0.01)
        async with aiohttp.ClientSession(url, headers=headers) as client:
            yield client
    finally:
        server.should_exit = True
        await task
        await close_session()
        listener.close()
