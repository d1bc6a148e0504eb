"""Replicas of one deployment live and fail apart from each other."""

import pytest

from dashboard import lifecycle
from dashboard.models import Deployment, Replica, Slot
from tests.dashboard.fake_agent import FakeAgent
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, worker

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)

KILLED = "Rank 0 on node-b was killed by signal 9 (SIGKILL)."


async def launch_of(index: int) -> Replica:
    rows = Replica.objects.exclude(status__in=["failed", "stopped", "stopping"])
    return await rows.select_related("head_node").aget(index=index)


async def run(agent: FakeAgent, launch: str) -> None:
    await agent.told_of(launch)
    agent.start_desired()
    await agent.report(agent.engine_of(launch, "ready", "ready"))


async def both_started(cast: Fleet) -> None:
    await cast.ask()
    await cast.until(lambda: Replica.objects.filter(status="starting").count() == 2)


async def test_two_replicas_take_a_node_each(worker: Worker) -> None:
    async with fleet(worker, tp=1, dp=2) as cast:
        await both_started(cast)
        first, second = await launch_of(0), await launch_of(1)
        assert [first.head_node.name, second.head_node.name] == ["node-a", "node-b"]
        await run(cast.a, first.launch)
        deployment = await cast.until_status("degraded")
        assert str(deployment.reason).startswith("1 of 2 replicas answer.")
        await run(cast.b, second.launch)
        deployment = await cast.until_status("ready")
        assert str(deployment.reason) == ""


async def test_a_replica_that_fails_is_restarted_alone(worker: Worker) -> None:
    async with fleet(worker, tp=1, dp=2) as cast:
        await both_started(cast)
        first, second = await launch_of(0), await launch_of(1)
        await run(cast.a, first.launch)
        await run(cast.b, second.launch)
        await cast.until_status("ready")
        cast.b.exit(f"{second.launch}:rank0", -9)
        await cast.b.report()
        said = f"1 of 2 replicas answer. {KILLED}"
        await cast.until(lambda: str(Deployment.objects.get().reason) == said)
        await cast.until(lambda: Replica.objects.filter(index=1, status="starting").exists())
        assert (await launch_of(0)).pk == first.pk
        await run(cast.b, (await launch_of(1)).launch)
        await cast.until_status("ready")
        assert str((await Slot.objects.aget(index=1)).reason) == ""


async def test_a_stop_ends_all_of_them(worker: Worker) -> None:
    async with fleet(worker, tp=1, dp=2) as cast:
        await both_started(cast)
        await cast.a.told_of((await launch_of(0)).launch)
        await cast.b.told_of((await launch_of(1)).launch)
        await cast.stop()
        await cast.ended()
        await cast.until_status("stopped")
        assert {replica.status async for replica in Replica.objects.all()} == {"stopped"}


async def test_a_replica_that_is_no_longer_asked_for_ends_with_a_restart(worker: Worker) -> None:
    async with fleet(worker, tp=1, dp=2) as cast:
        await both_started(cast)
        second = await launch_of(1)
        await Deployment.objects.aupdate(settings={"dp": 1})
        await cast.in_database(lambda: lifecycle.request_restart(Deployment.objects.get(), "me"))
        assert (await Replica.objects.aget(pk=second.pk)).status == "stopping"
        assert await Slot.objects.acount() == 1
