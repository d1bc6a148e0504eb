"""What agents and heads repair by themselves is shown, and nothing new is started for it."""

import msgspec
import pytest

from dashboard.models import Deployment, Event, Job, Rank, Replica
from engine.errors import Said
from engine.protocol.stats import EngineStats
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, worker

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)

KILLED = "Rank 1 on node-b was killed by signal 9 (SIGKILL)."


def recovering(cast: Fleet, waiting: int = 0) -> EngineStats:
    return msgspec.structs.replace(
        cast.a.engine("recovering", "idle", "starting"), last_fault=Said(KILLED), waiting=waiting
    )


async def restart_rank_1(cast: Fleet) -> None:
    """As its agent does: at once, for the same launch."""
    cast.b.restart(":rank1", -9)
    await cast.b.report()


async def test_a_rank_that_is_restarted_in_place_costs_no_new_launch(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        await restart_rank_1(cast)
        await cast.until(lambda: Rank.objects.get(rank=1).status == "starting")
        assert str((await Rank.objects.aget(rank=1)).detail) == KILLED
        await cast.a.report(recovering(cast, waiting=8))
        deployment = await cast.until_status("recovering")
        assert str(deployment.reason) == KILLED
        assert (await Replica.objects.aget()).status == "recovering"
        event = await Event.objects.filter(level="warning").afirst()
        assert event is not None
        assert event.text == f"{KILLED} 8 answers wait."
        await cast.a.report(
            msgspec.structs.replace(
                cast.a.engine("ready", "ready", "ready"), recovery_seconds=2.34, epoch=1
            )
        )
        deployment = await cast.until_status("ready")
        assert (str(deployment.reason), deployment.restarts) == ("", 0)
        replica = await Replica.objects.aget()
        assert (replica.status, replica.recoveries) == ("ready", 1)
        assert await Event.objects.filter(message__startswith="It goes on after").aexists()
        assert not await Job.objects.filter(kind="restart").aexists()


async def test_a_head_that_is_restarted_in_place_is_named(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        cast.a.restart(":head", -9)
        await cast.a.report()
        deployment = await cast.until_status("recovering")
        assert str(deployment.reason) == "The head on node-a was killed by signal 9 (SIGKILL)."
        await cast.a.report(cast.a.engine("ready", "ready", "ready"))
        await cast.until_status("ready")
        assert await Replica.objects.acount() == 1


async def test_a_head_that_gives_up_recovering_ends_the_launch(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        await cast.a.report(recovering(cast))
        await cast.until_status("recovering")
        await cast.a.report(cast.a.engine("failed", "idle", "starting", detail="lost rank 1"))
        await cast.until(lambda: Deployment.objects.get().status == "restarting")
        await cast.become_ready()
        assert await Replica.objects.filter(status="failed").acount() == 1
