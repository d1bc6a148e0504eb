"""A node that is taken out of service is emptied without anybody going unanswered."""

import pytest

from dashboard.audit import PANEL, Actor
from dashboard.choices import ACTIVE_JOB_STATUSES
from dashboard.lifecycle import evacuation
from dashboard.lifecycle.evacuation import Clearance
from dashboard.models import AuditEntry, Deployment, Event, Job, Node, Replica, Slot
from dashboard.placement import HEAD_BYTES, rank_bytes
from dashboard.sentences import Sentence
from tests.dashboard.fake_agent import FakeAgent
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, node, worker
from tests.dashboard.test_fallback import add_fallback, live, run, there

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)

OPERATOR = Actor("ops", 1, "form", "10.0.0.7")


async def take_out(cast: Fleet, name: str) -> None:
    box = await node(name)
    await cast.until(lambda: not Job.objects.filter(status__in=ACTIVE_JOB_STATUSES).exists())
    await cast.in_database(lambda: evacuation.evacuate(box, OPERATOR, Sentence("New fans.")))
    await cast.reconcile()


async def clearance(cast: Fleet, name: str) -> Clearance:
    box = await node(name)
    found: Clearance = await cast.in_database(lambda: evacuation.clear(box))
    return found


async def end_what_is_unwanted(agent: FakeAgent, launch: str) -> None:
    await agent.told_of(launch)
    agent.start_desired()
    await agent.report(agent.engine_of(launch, "ready", "ready"))


async def one_on(cast: Fleet) -> tuple[FakeAgent, FakeAgent, Replica]:
    """The only launch is ready: its agent, the other one, the launch."""
    await cast.ask()
    await cast.until(lambda: there("primary", "starting"))
    launch = await live("primary")
    here, other = (cast.a, cast.b) if launch.head_node.name == "node-a" else (cast.b, cast.a)
    await run(here, launch.launch, "ready")
    await cast.until_status("ready")
    return here, other, launch


async def test_a_copy_elsewhere_takes_over_before_the_old_launch_ends(worker: Worker) -> None:
    async with fleet(worker, tp=1) as cast:
        here, other, old = await one_on(cast)
        await take_out(cast, old.head_node.name)
        await cast.until(lambda: there("candidate", "starting"))
        copy = await live("candidate")
        assert copy.head_node.name != old.head_node.name
        assert (await live("primary")).pk == old.pk
        await run(other, copy.launch, "ready")
        await cast.until(lambda: there("retiring", "stopping"))
        assert (await live("primary")).pk == copy.pk
        await here.told(None)
        here.start_desired()
        await here.report()
        await cast.until(lambda: Job.objects.filter(kind="move", status="done").exists())
        assert (await cast.fresh()).status == "ready"
        assert await Slot.objects.acount() == 1
        found = await clearance(cast, old.head_node.name)
        assert found.done
        assert await AuditEntry.objects.filter(action="node.evacuate", actor="ops").aexists()


async def test_it_comes_back_when_the_node_is_given_back(worker: Worker) -> None:
    async with fleet(worker, tp=2) as cast:
        await cast.deploy()
        first = await live("primary")
        await take_out(cast, "node-b")
        await cast.until(lambda: there("candidate", "starting"))
        copy = await live("candidate")
        ranks = [rank.node.name async for rank in copy.ranks.select_related("node")]
        assert ranks == ["node-a", "node-a"]
        await cast.a.told_of(copy.launch)
        cast.a.start_desired()
        await cast.a.report(
            cast.a.engine_of(first.launch, "ready", "ready", "ready"),
            cast.a.engine_of(copy.launch, "ready", "ready", "ready"),
        )
        await cast.until(lambda: there("retiring", "stopping"))
        await cast.b.told(None)
        cast.b.start_desired()
        await cast.b.report()
        await cast.a.told(copy.launch)
        cast.a.start_desired()
        await cast.a.report(cast.a.engine_of(copy.launch, "ready", "ready", "ready"))
        await cast.until(lambda: Job.objects.filter(kind="move", status="done").exists())
        assert (await clearance(cast, "node-b")).done
        box = await node("node-b")
        await cast.in_database(lambda: evacuation.give_back(box, PANEL))
        await cast.until(lambda: there("candidate", "starting"))
        home = await live("candidate")
        ranks = [rank.node.name async for rank in home.ranks.select_related("node")]
        assert sorted(ranks) == ["node-a", "node-b"]


async def test_the_fallback_takes_over_where_no_copy_has_room(worker: Worker) -> None:
    async with fleet(worker, tp=2) as cast:
        await add_fallback(cast, dtype="bf16", kv_dtype="bf16")
        await cast.deploy()
        first = await live("primary")
        floor = await cast.in_database(room_for_the_fallback_alone)
        await Node.objects.filter(name="node-a").aupdate(settings={"memory_floor_mb": floor})
        await take_out(cast, "node-b")
        await cast.until(lambda: there("fallback", "starting"))
        assert (await live("primary")).status == "ready"
        fallback = await live("fallback")
        assert fallback.head_node.name == "node-a"
        await cast.a.told_of(fallback.launch)
        cast.a.start_desired()
        await cast.a.report(
            cast.a.engine_of(first.launch, "ready", "ready", "ready"),
            cast.a.engine_of(fallback.launch, "ready", "ready"),
        )
        await cast.until(lambda: there("primary", "stopping"))
        assert (await cast.fresh()).status == "degraded"


def room_for_the_fallback_alone() -> int:
    """Megabytes to keep free on node-a so that beside its rank the fallback fits and a copy of
    the whole deployment does not."""
    deployment = Deployment.objects.select_related("model").get()
    shape = deployment.model.shape
    there = rank_bytes(shape, deployment.engine_config, dot_products=False)
    small = rank_bytes(shape, deployment.fallback.engine_config, dot_products=False)
    assert sum(small) < sum(there)
    return (16 * 2**30 - there[0] - sum(small) - HEAD_BYTES) // 2**20 - 8


async def test_what_would_fall_silent_stays_and_the_node_says_why(worker: Worker) -> None:
    async with fleet(worker, tp=2) as cast:
        await cast.deploy()
        await Node.objects.filter(name="node-a").aupdate(settings={"memory_floor_mb": 10**7})
        await take_out(cast, "node-b")
        await cast.reconcile()
        assert not await Job.objects.filter(kind="move").aexists()
        found = await clearance(cast, "node-b")
        assert not found.done
        assert "chat would stop answering" in str(found.left)
        assert (await cast.fresh()).status == "ready"


async def test_a_copy_that_does_not_start_leaves_all_as_it_was(worker: Worker) -> None:
    async with fleet(worker, tp=1) as cast:
        _here, other, old = await one_on(cast)
        await take_out(cast, old.head_node.name)
        await cast.until(lambda: there("candidate", "starting"))
        copy = await live("candidate")
        await other.told_of(copy.launch)
        other.start_desired()
        other.exit("head", 1, "no memory")
        await other.report()
        await cast.until(lambda: Job.objects.filter(kind="move", status="failed").exists())
        assert (await live("primary")).pk == old.pk
        assert (await cast.fresh()).status == "ready"
        assert not await Slot.objects.filter(role="candidate", wanted=True).aexists()
        found = await clearance(cast, old.head_node.name)
        assert "could not be moved" in str(found.left)
        assert await Event.objects.filter(message__contains="could not be moved").aexists()


async def test_asking_twice_is_asking_once(worker: Worker) -> None:
    async with fleet(worker, tp=1) as cast:
        await one_on(cast)
        await take_out(cast, "node-b")
        await take_out(cast, "node-b")
        assert await AuditEntry.objects.filter(action="node.evacuate").acount() == 1
        assert await Deployment.objects.filter(status="ready").aexists()
