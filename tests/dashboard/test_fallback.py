"""A deployment with a fallback goes on answering from one box, and returns once it can."""

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard import heads, lifecycle
from dashboard.errors import StatusConflict
from dashboard.models import Deployment, Event, Fallback, Job, Replica, Slot
from engine.protocol.stats import EngineStats
from engine.protocol.steps import Phase
from tests.dashboard.fake_agent import FakeAgent
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, worker

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)


async def add_fallback(cast: Fleet, **settings: str) -> None:
    await Fallback.objects.acreate(
        deployment=cast.deployment, kv_cache_tokens=1024, **({"mode": "cold"} | settings)
    )


async def live(role: str) -> Replica:
    rows = Replica.objects.select_related("head_node", "deployment")
    return await rows.exclude(status__in=["stopped", "failed", "stopping"]).aget(role=role)


def there(role: str, *statuses: str) -> bool:
    return Replica.objects.filter(role=role, status__in=statuses).exists()


async def run(agent: FakeAgent, launch: str, *phases: Phase) -> None:
    """The agent was told of the launch, among others, and its head says so."""
    await agent.told_of(launch)
    agent.start_desired()
    await agent.report(agent.engine_of(launch, "ready", *phases))


async def both_ready(cast: Fleet) -> None:
    """Primary over both nodes, resident fallback on the node of its head."""
    await cast.ask()
    await cast.until(lambda: there("primary", "starting") and there("fallback", "starting"))
    primary, fallback = await live("primary"), await live("fallback")
    assert fallback.head_node.name == primary.head_node.name == "node-a"
    await cast.b.told_of(primary.launch)
    cast.b.start_desired()
    await cast.b.report()
    await cast.a.told_of(primary.launch, fallback.launch)
    cast.a.start_desired()
    await cast.a.report(
        cast.a.engine_of(primary.launch, "ready", "ready", "ready"),
        cast.a.engine_of(fallback.launch, "ready", "ready"),
    )
    await cast.until_status("ready")
    await cast.until(lambda: there("fallback", "ready"))


async def lose_node_b(cast: Fleet) -> None:
    """Its agent is silent, and the head has given up waiting for its rank."""
    primary = await live("primary")
    await cast.b.go()
    await cast.a.report(
        cast.a.engine_of(primary.launch, "failed", "idle", "starting", detail="lost rank 1")
    )
    await cast.until(lambda: there("primary", "failed"))


async def cold_one_answers(cast: Fleet) -> None:
    await cast.deploy()
    await lose_node_b(cast)
    await cast.until(lambda: there("fallback", "starting"))
    fallback = await live("fallback")
    await run(cast.a, fallback.launch, "ready")
    await cast.until_status("degraded")


async def node_b_is_back(cast: Fleet) -> FakeAgent:
    agent = cast.dial_again("node-b")
    await agent.__aenter__()
    cast.b = agent
    return agent


async def primary_runs(cast: Fleet) -> Replica:
    """A new launch of it is on both nodes, and every process says that it is ready."""
    await cast.until(lambda: there("primary", "starting"))
    primary, fallback = await live("primary"), await live("fallback")
    await cast.b.told_of(primary.launch)
    cast.b.start_desired()
    await cast.b.report()
    await cast.a.told_of(primary.launch, fallback.launch)
    cast.a.start_desired()
    engines = [cast.a.engine_of(fallback.launch, "ready", "ready")]
    if primary.head_node.name == "node-a":
        engines.append(cast.a.engine_of(primary.launch, "ready", "ready", "ready"))
    else:
        await cast.b.report(cast.b.engine_of(primary.launch, "ready", "ready", "ready"))
    await cast.a.report(*engines)
    return primary


async def test_a_resident_fallback_runs_beside_the_primary_with_its_own_settings(
    worker: Worker,
) -> None:
    async with fleet(worker) as cast:
        await add_fallback(cast, mode="resident", dtype="int8")
        await both_ready(cast)
        specs = {spec.key: spec for spec in cast.a.desired.processes}
        fallback = await live("fallback")
        spec = specs[f"{fallback.launch}:rank0"]
        assert (spec.served_name, spec.config.dtype, spec.config.plan.tp) == ("chat", "int8", 1)
        assert spec.planned_bytes
        assert spec.memory_floor == 1024 * 2**20


async def test_a_resident_fallback_answers_while_a_rank_is_restarted(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await add_fallback(cast, mode="resident")
        await both_ready(cast)
        primary = await live("primary")
        await cast.a.report(cast.a.engine_of(primary.launch, "recovering", "idle", "starting"))
        deployment = await cast.until_status("degraded")
        assert str(deployment.reason).startswith("The fallback answers.")
        await cast.a.report(cast.a.engine_of(primary.launch, "ready", "ready", "ready"))
        await cast.until_status("ready")
        assert await Replica.objects.acount() == 2


async def test_a_cold_fallback_is_called_in_when_a_box_is_gone_and_says_why(
    worker: Worker,
) -> None:
    async with fleet(worker) as cast:
        await add_fallback(cast)
        await cold_one_answers(cast)
        deployment = await cast.fresh()
        assert str(deployment.reason) == "The fallback answers. node-b is offline."
        called = await Event.objects.aget(message__startswith="The fallback is called in")
        assert called.text == "The fallback is called in: node-b is offline."
        assert not await Job.objects.filter(kind="restart").aexists(), "it waits for its box"


async def test_it_is_called_in_at_once_while_the_head_still_waits_for_the_box(
    worker: Worker,
) -> None:
    async with fleet(worker) as cast:
        await add_fallback(cast)
        await cast.deploy()
        primary = await live("primary")
        await cast.a.report(
            cast.a.engine_of(primary.launch, "recovering", "idle", "starting", detail="lost rank 1")
        )
        await cast.until_status("recovering")
        assert not await Replica.objects.filter(role="fallback").aexists()
        await cast.b.go()
        await cast.until(lambda: there("fallback", "starting"))
        assert (await live("primary")).status == "recovering"


async def test_the_primary_returns_by_itself_and_the_fallback_stands_down(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: list[str] = []

    def ask(replica: Replica, model: str) -> str:
        tokens.append(replica.launch)
        assert Replica.objects.get(launch=replica.launch).status == "starting"
        return ""

    async with fleet(worker) as cast:
        await add_fallback(cast)
        await cold_one_answers(cast)
        await cast.until(lambda: not Job.objects.filter(status__in=["queued", "running"]).exists())
        monkeypatch.setattr(heads, "ask_for_a_token", ask)
        await node_b_is_back(cast)
        try:
            await cast.reconcile()
            primary = await primary_runs(cast)
            await cast.until_status("ready")
            assert tokens == [primary.launch] * 4, "it proved itself before it was given requests"
            await cast.until(lambda: there("fallback", "stopping"))
            slot = await Slot.objects.aget(role="fallback")
            assert not slot.wanted
        finally:
            await cast.b.go()


async def test_a_fallback_that_stands_down_finishes_its_answers(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet(worker) as cast:
        await add_fallback(cast)
        await cold_one_answers(cast)
        busy = EngineStats(launch="x", status="ready", running=2)
        monkeypatch.setattr(heads, "ask_stats", lambda replica: busy)
        await node_b_is_back(cast)
        try:
            await cast.reconcile()
            await primary_runs(cast)
            await cast.until(lambda: Job.objects.filter(kind="drain", status="running").exists())
            assert (await live("fallback")).status == "draining"
            monkeypatch.setattr(heads, "ask_stats", lambda replica: None)
            await cast.until(lambda: there("fallback", "stopping"))
        finally:
            await cast.b.go()


async def test_a_return_that_is_left_to_a_person_waits_for_the_click(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await add_fallback(cast, returns="click")
        await cold_one_answers(cast)
        deployment = await cast.fresh()
        with pytest.raises(StatusConflict, match="node-b is offline"):
            await cast.in_database(lambda: lifecycle.request_return(deployment, "someone"))
        await node_b_is_back(cast)
        try:
            await cast.reconcile()
            said = "The fallback answers. node-b is back; press Return."
            await cast.until(lambda: str(Deployment.objects.get().reason) == said)
            await cast.reconcile()
            assert not await Replica.objects.filter(role="primary", status="starting").aexists()
            deployment = await cast.fresh()
            await cast.in_database(lambda: lifecycle.request_return(deployment, "someone"))
            await primary_runs(cast)
            await cast.until_status("ready")
        finally:
            await cast.b.go()


async def test_a_box_that_comes_and_goes_is_not_tried_again_at_once(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await add_fallback(cast)
        await cold_one_answers(cast)
        await node_b_is_back(cast)
        await cast.reconcile()
        await primary_runs(cast)
        await cast.until_status("ready")
        await lose_node_b_again(cast)
        slot = await Slot.objects.aget(role="primary")
        assert slot.failed_returns == 1
        assert slot.hold_until is not None
        assert timedelta(seconds=20) < slot.hold_until - timezone.now() < timedelta(seconds=31)
        await node_b_is_back(cast)
        try:
            await cast.reconcile()
            assert not await Replica.objects.filter(role="primary", status="starting").aexists()
            await Slot.objects.aupdate(hold_until=timezone.now())
            await cast.reconcile()
            await cast.until(lambda: there("primary", "starting"))
        finally:
            await cast.b.go()


async def lose_node_b_again(cast: Fleet) -> None:
    primary = await live("primary")
    head, other = (cast.a, cast.b) if primary.head_node.name == "node-a" else (cast.b, cast.a)
    assert head is cast.a, "a primary starts where it ran before"
    await other.go()
    await head.report(
        head.engine_of(primary.launch, "failed", "idle", "starting", detail="lost rank 1")
    )
    await cast.until(lambda: Replica.objects.filter(role="primary", status="failed").count() == 2)
