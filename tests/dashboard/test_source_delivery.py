"""A source that is saved reaches its node's agent at once, and so does its removal."""

import asyncio

import pytest
from channels.db import database_sync_to_async

from dashboard import lifecycle
from dashboard.models import Node
from monitoring.models import NodeSource
from monitoring.sources import RedfishSource, Source
from tests.dashboard.fake_agent import ANSWER_SECONDS, FakeAgent
from tests.dashboard.fleet_cast import Worker, worker

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)

BMC = RedfishSource(name="bmc", url="https://10.0.0.9", username="u", password="hunter22")


def save() -> NodeSource:
    row = NodeSource(node=Node.objects.get())
    lifecycle.save_source(row, BMC, "ada")
    return row


async def told(agent: FakeAgent, *sources: Source) -> None:
    async with asyncio.timeout(ANSWER_SECONDS):
        while agent.desired.sources != list(sources):
            await agent.receive_desired()


async def test_the_agent_hears_of_it(worker: Worker) -> None:
    _node, token = await database_sync_to_async(lifecycle.create_node)("box", "10.0.0.9")
    async with FakeAgent(token, "10.0.0.9") as agent:
        assert agent.desired.sources == []
        row = await database_sync_to_async(save)()
        await told(agent, BMC)
        await database_sync_to_async(lifecycle.remove_source)(row, "ada")
        await told(agent)
