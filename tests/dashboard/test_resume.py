"""A new `up` knows that every local engine has gone."""

import pytest
from channels.db import database_sync_to_async

from dashboard import lifecycle
from dashboard.models import Job, Node, Replica
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, worker

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)


async def resume_on(*names: str) -> None:
    await database_sync_to_async(lifecycle.resume_on)(names)


async def launches(cast: Fleet) -> list[str]:
    replicas = Replica.objects.order_by("pk").values_list("status", flat=True)
    return [status async for status in replicas]


async def test_a_wanted_deployment_starts_again_without_waiting(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        await resume_on("node-a", "node-b")
        deployment = await cast.fresh()
        assert (deployment.status, str(deployment.reason)) == (
            "restarting",
            "Tandem was started again.",
        )
        assert await Job.objects.filter(kind="restart", status="queued").acount() == 1
        statuses = Node.objects.values_list("status", flat=True)
        assert {status async for status in statuses} == {"offline"}


async def test_a_deployment_that_runs_elsewhere_is_left_alone(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        await resume_on("node-c")
        assert (await cast.fresh()).status == "ready"
        assert await launches(cast) == ["ready"]


async def test_a_stopped_deployment_stays_stopped(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await resume_on("node-a", "node-b")
        assert (await cast.fresh()).status == "stopped"
        assert await launches(cast) == []
