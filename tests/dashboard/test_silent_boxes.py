"""A silent agent is not a dead box: the head is asked before anything is taken from it."""

import pytest

from dashboard import heads
from dashboard.models import Replica
from engine.errors import Said
from engine.protocol.stats import EngineStats
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, worker

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)


async def lose_both(cast: Fleet) -> None:
    for agent, name in ((cast.a, "node-a"), (cast.b, "node-b")):
        await agent.go()
        await cast.long_ago(name)


async def test_engines_whose_head_answers_go_on(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        well = EngineStats(launch="x", status="ready")
        monkeypatch.setattr(heads, "ask_stats", lambda replica: well)
        await lose_both(cast)
        await cast.reconcile()
        deployment = await cast.fresh()
        assert deployment.status == "ready"
        assert str(deployment.reason) == (
            "There is no word from the agent of node-a, node-b; its engine goes on."
        )


async def test_a_head_that_recovers_unseen_is_shown_so_and_left_alone(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        hurt = EngineStats(launch="x", status="recovering", last_fault=Said("Rank 1 is silent."))
        monkeypatch.setattr(heads, "ask_stats", lambda replica: hurt)
        await lose_both(cast)
        await cast.reconcile()
        deployment = await cast.fresh()
        assert (deployment.status, str(deployment.reason)) == ("recovering", "Rank 1 is silent.")
        monkeypatch.setattr(
            heads, "ask_stats", lambda replica: EngineStats(launch="x", status="ready")
        )
        await cast.reconcile()
        assert (await cast.fresh()).status == "ready"
        assert await Replica.objects.acount() == 1


async def test_a_box_that_is_silent_and_unreachable_is_gone(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        await lose_both(cast)
        await cast.reconcile()
        await cast.until(lambda: Replica.objects.filter(status="failed").exists())
        deployment = await cast.fresh()
        assert deployment.status == "restarting"
        assert str(deployment.reason) == "node-a, node-b is offline."
