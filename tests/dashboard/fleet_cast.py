"""The shared cast of the control plane's tests: a model, nodes, agents, and a worker to drive."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from dashboard import heads, lifecycle, outbox
from dashboard.catalogue import bundled_model_path
from dashboard.configuration.engine import ENGINE
from dashboard.jobs import tasks
from dashboard.models import Deployment, Model, Node
from engine.checkpoint import open_checkpoint
from tests.dashboard.fake_agent import FakeAgent

WAIT_SECONDS = 20.0
ADDRESSES = {"node-a": "10.0.0.1", "node-b": "10.0.0.2"}


@dataclass
class Queued:
    name: str
    arguments: tuple[Any, ...]
    countdown: float


@dataclass
class Worker:
    """Stands in for Celery: keeps what was queued and runs it when told to."""

    queue: list[Queued] = field(default_factory=list)
    history: list[Queued] = field(default_factory=list)

    def put(self, name: str, arguments: tuple[Any, ...], countdown: float) -> None:
        item = Queued(name, arguments, countdown)
        self.queue.append(item)
        self.history.append(item)

    def work(self) -> None:
        """Run what is queued now; what that queues is for the next time."""
        todo, self.queue = self.queue, []
        for item in todo:
            task = {
                "tandem.run_job": tasks.run_job,
                "tandem.run_update": tasks.run_update,
                "tandem.reconcile": tasks.reconcile,
            }[item.name]
            if item.name != "tandem.reconcile" or not item.countdown:
                task.run(*item.arguments)

    async def work_until(self, done: Callable[[], bool]) -> None:
        """Keep working until `done`, which is asked in a database thread."""
        deadline = time.monotonic() + WAIT_SECONDS
        check, work = database_sync_to_async(done), database_sync_to_async(self.work)
        while not await check():
            assert time.monotonic() < deadline, f"still waiting; queued: {self.queue}"
            await work()
            await asyncio.sleep(0.02)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    worker = Worker()
    monkeypatch.setattr(outbox, "_queue", worker.put)
    monkeypatch.setattr(heads, "ask_for_a_token", lambda replica, model: "")
    monkeypatch.setattr(heads, "ask_stats", lambda replica: None)
    return worker


def make_model() -> Model:
    checkpoint = open_checkpoint(bundled_model_path())
    return Model.objects.create(
        name="smollm2",
        path=str(checkpoint.path),
        revision="r1",
        size_bytes=checkpoint.size_bytes,
        parameters=checkpoint.parameters,
        config=msgspec.to_builtins(checkpoint.config),
    )


def make_deployment(name: str = "chat", **given: Any) -> Deployment:
    """Declared settings and the row's own fields, mixed."""
    model = Model.objects.first() or make_model()
    settings = {name: value for name, value in given.items() if name in ENGINE}
    fields = {name: value for name, value in given.items() if name not in ENGINE}
    return Deployment.objects.create(
        name=name, model=model, settings={"tp": 2, "kv_cache_tokens": 1024} | settings, **fields
    )


@dataclass
class Fleet:
    """Two nodes, their agents, one deployment."""

    deployment: Deployment
    a: FakeAgent
    b: FakeAgent
    tokens: dict[str, str]
    worker: Worker

    async def fresh(self) -> Deployment:
        return await Deployment.objects.select_related("model").aget(pk=self.deployment.pk)

    async def ask(self) -> None:
        await database_sync_to_async(lifecycle.request_deploy)(await self.fresh(), "someone")

    async def stop(self) -> None:
        await database_sync_to_async(lifecycle.request_stop)(await self.fresh(), "someone")

    async def deploy(self) -> None:
        """Ask for it and see it to ready."""
        await self.ask()
        await self.become_ready()

    async def become_ready(self) -> None:
        await self.launched()
        await self.a.report(self.a.engine("ready", "ready", "ready"))
        await self.until_status("ready")

    async def launched(self, *agents: FakeAgent) -> None:
        """The agents (both, unless named) were told of a new launch and run it."""
        agents = agents or (self.a, self.b)
        known = {spec.launch for agent in agents for spec in agent.desired.processes}
        starting = self.deployment.replicas.filter(status="starting").exclude(launch__in=known)
        await self.worker.work_until(starting.exists)
        replica = await starting.aget()
        for agent in agents:
            await agent.told(replica.launch)
            agent.start_desired()
            await agent.report()

    async def ended(self) -> None:
        """Both agents were told to run nothing, and run nothing."""
        for agent in (self.a, self.b):
            await agent.told(None)
            agent.start_desired()
            await agent.report()

    async def until_status(self, status: str) -> Deployment:
        await self.worker.work_until(
            lambda: Deployment.objects.get(pk=self.deployment.pk).status == status
        )
        return await self.fresh()

    async def reconcile(self) -> None:
        await self.in_database(lifecycle.reconcile)

    async def in_database(self, work: Callable[[], Any]) -> Any:
        return await database_sync_to_async(work)()

    async def long_ago(self, name: str) -> None:
        """The node was last heard of a minute ago; it has been noticed to be away."""
        await self.until(lambda: Node.objects.get(name=name).status == "offline")
        past = timezone.now() - timedelta(minutes=1)
        await Node.objects.filter(name=name).aupdate(last_seen=past)
        await Node.objects.aupdate(connected_at=past)

    def dial_again(self, name: str) -> FakeAgent:
        return FakeAgent(self.tokens[name], ADDRESSES[name])

    @asynccontextmanager
    async def again(self, name: str) -> AsyncIterator[FakeAgent]:
        async with self.dial_again(name) as agent:
            yield agent

    async def until(self, done: Callable[[], bool]) -> None:
        await self.worker.work_until(done)


@asynccontextmanager
async def fleet(worker: Worker, **settings: Any) -> AsyncIterator[Fleet]:
    tokens = {}
    for name, address in ADDRESSES.items():
        _, tokens[name] = await database_sync_to_async(lifecycle.create_node)(name, address)
    deployment = await database_sync_to_async(make_deployment)(**settings)
    async with AsyncExitStack() as stack:
        a = await stack.enter_async_context(FakeAgent(tokens["node-a"], "10.0.0.1"))
        b = await stack.enter_async_context(FakeAgent(tokens["node-b"], "10.0.0.2"))
        yield Fleet(deployment, a, b, tokens, worker)


async def node(name: str) -> Node:
    return await Node.objects.aget(name=name)
