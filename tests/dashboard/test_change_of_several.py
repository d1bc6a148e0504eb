"""Settings of more than one replica, and of one with a fallback, change without a silent moment."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from django.db import transaction

from dashboard import canary
from dashboard.canary import CanaryError
from dashboard.choices import Fault
from dashboard.jobs import change as change_steps
from dashboard.lifecycle import revisions
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.failures import Cause, fail_replica
from dashboard.lifecycle.preview import ChangeWay
from dashboard.models import Fallback, Job, Node, Rank, Replica, Revision, Slot
from dashboard.sentences import Sentence
from engine.protocol.steps import Phase
from tests.dashboard.fake_agent import FakeAgent
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, worker
from tests.dashboard.test_change_of_settings import (
    ACTOR,
    Heads,
    apply,
    at_rest,
    heads,
    look,
    propose,
    state_of,
)

__all__ = ["heads", "worker"]

pytestmark = pytest.mark.django_db(transaction=True)

READY: tuple[Phase, ...] = ("ready", "ready")
KV_BYTES_A_TOKEN = 30 * 2 * 3 * 64 * 4
"""Of the bundled model in fp32: layers, keys and values, heads, their width."""


async def run_whatever_is_asked(agent: FakeAgent) -> None:
    """Everything comes up at once and ends at once."""
    while True:
        agent.start_desired()
        heads = [spec.launch for spec in agent.desired.processes if spec.role == "head"]
        await agent.report(*(agent.engine_of(launch, "ready", *READY) for launch in heads))
        await agent.receive_desired()


@asynccontextmanager
async def running(worker: Worker, **settings: object) -> AsyncIterator[Fleet]:
    """Two boxes whose agents do what they are told; the deployment is ready."""
    async with fleet(worker, tp=1, max_model_len=1000, **settings) as cast:
        agents = [asyncio.create_task(run_whatever_is_asked(one)) for one in (cast.a, cast.b)]
        try:
            await cast.ask()
            await cast.until_status("ready")
            await at_rest(cast)
            yield cast
        finally:
            for agent in agents:
                agent.cancel()
                with suppress(asyncio.CancelledError):
                    await agent


async def room_for(launches: dict[str, float]) -> None:
    """Each box holds so many launches of this size, and not one more."""
    ranks = Rank.objects.filter(replica__status="ready")
    planned = max([rank.planned_bytes or 0 async for rank in ranks])
    for name, count in launches.items():
        # Of 16 GB; a head is reckoned with 250 MB while it is placed.
        floor = 16 * 2**10 - (count + 0.4) * planned / 2**20 - 250
        await Node.objects.filter(name=name).aupdate(settings={"memory_floor_mb": int(floor)})


async def primaries(*statuses: str) -> dict[int, Replica]:
    rows = Replica.objects.filter(role="primary", status__in=statuses or ["ready"])
    rows = rows.select_related("head_node")
    return {row.index: row async for row in rows}


def there(role: str, *statuses: str) -> bool:
    return Replica.objects.filter(role=role, status__in=statuses).exists()


def change_ended(status: str) -> Callable[[], bool]:
    return Job.objects.filter(kind="change", status=status).exists


async def test_replicas_are_replaced_in_turn_with_room_for_one_more(
    worker: Worker, heads: Heads
) -> None:
    async with running(worker, dp=2) as cast:
        before = await primaries()
        await room_for({"node-a": 2, "node-b": 1})
        revision = await propose(cast, max_batch_size=8)
        assert (await look(cast, revision)).way == ChangeWay.BESIDE
        await apply(cast, revision)
        await at_rest(cast)
        after = await primaries()
        assert await state_of(revision) == "current"
        assert set(after) == {0, 1}
        assert {one.pk for one in after.values()}.isdisjoint(one.pk for one in before.values())
        assert all(one.engine_config.max_batch_size == 8 for one in after.values())
        assert not await Replica.objects.filter(status="failed").aexists()
        assert await Slot.objects.filter(revision=None, role="primary").acount() == 2


async def test_one_that_took_over_and_dies_takes_all_back(
    worker: Worker, heads: Heads, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(worker, dp=2) as cast:
        before = await primaries()
        measure = heads.measure

        def while_the_second_is_proved(replica: Replica, name: str) -> canary.Measured:
            if replica.role == "candidate" and replica.index == 1:
                _crash(Replica.objects.get(role="primary", index=0, status="ready"))
            return measure(replica, name)

        monkeypatch.setattr(canary, "measure", while_the_second_is_proved)
        revision = await propose(cast, max_batch_size=8)
        await apply(cast, revision)
        await cast.until(change_ended("failed"))
        await at_rest(cast)
        after = await primaries()
        assert {index: one.pk for index, one in after.items()} == {
            index: one.pk for index, one in before.items()
        }
        assert await state_of(revision) == "failed"


async def test_the_replica_before_goes_back_even_when_its_old_launch_is_gone(
    worker: Worker, heads: Heads
) -> None:
    async with running(worker, dp=2) as cast:
        await room_for({"node-a": 2, "node-b": 1})
        first = await primaries()
        heads.known = {one.launch for one in first.values()}
        revision = await propose(cast, max_batch_size=8)
        await apply(cast, revision)
        await cast.until(lambda: there("retiring", "draining"))
        heads.known |= {one.launch for one in (await primaries()).values()}
        heads.later = CanaryError("HTTP 500")
        await cast.until(change_ended("failed"))
        heads.later = None
        await at_rest(cast)
        await cast.until_status("ready")
        after = await primaries()
        assert set(after) == {0, 1}
        assert all(one.engine_config.max_batch_size != 8 for one in after.values())


async def test_more_replicas_come_without_replacing_any(worker: Worker, heads: Heads) -> None:
    async with running(worker, dp=1) as cast:
        before = await primaries()
        revision = await propose(cast, dp=2)
        assert (await look(cast, revision)).way == ChangeWay.LIVE
        await apply(cast, revision)
        await at_rest(cast)
        await cast.reconcile()
        await cast.until(
            lambda: Replica.objects.filter(role="primary", status="ready").count() == 2
        )
        assert (await primaries())[0].pk == before[0].pk
        revision = await propose(cast, dp=1)
        await apply(cast, revision)
        await at_rest(cast)
        assert set(await primaries()) == {0}
        assert (await cast.fresh()).status == "ready"


async def test_more_replicas_than_there_is_room_for_are_refused(
    worker: Worker, heads: Heads
) -> None:
    async with running(worker, dp=1) as cast:
        await room_for({"node-a": 1, "node-b": 1})
        ahead = await look(cast, await propose(cast, dp=3))
        assert ahead.way == ChangeWay.REFUSED
        assert "too little" in str(ahead.why)


async def test_the_fallback_is_there_before_the_old_launch_ends(
    worker: Worker, heads: Heads
) -> None:
    async with running(worker, dp=1, kv_cache_tokens=1024) as cast:
        fields = {"deployment": cast.deployment, "mode": "cold", "kv_cache_tokens": 1024}
        await Fallback.objects.acreate(**fields)
        await Slot.objects.acreate(deployment=cast.deployment, role="fallback", wanted=False)
        old = (await primaries())[0]
        assert old.head_node.name == "node-a"
        planned = max([rank.planned_bytes or 0 async for rank in old.ranks.all()])
        await room_for({"node-a": 1.45, "node-b": 1})
        larger = 1024 + int(0.8 * planned / KV_BYTES_A_TOKEN) // 16 * 16
        revision = await propose(cast, kv_cache_tokens=larger)
        assert (await look(cast, revision)).way == ChangeWay.IN_PLACE
        await apply(cast, revision)
        await at_rest(cast)
        assert await state_of(revision) == "current"
        fallback = await Replica.objects.aget(role="fallback")
        old = await Replica.objects.aget(pk=old.pk)
        assert fallback.ready_at is not None
        assert old.ended_at is not None
        assert fallback.ready_at < old.ended_at
        await cast.reconcile()
        await cast.until(lambda: there("fallback", "stopped"))
        assert (await cast.fresh()).status == "ready"


async def test_a_fallback_that_answers_alone_is_left_alone(worker: Worker, heads: Heads) -> None:
    async with running(worker, dp=1) as cast:
        await Fallback.objects.acreate(
            deployment=cast.deployment, mode="cold", kv_cache_tokens=1024
        )
        await Replica.objects.aupdate(role="fallback")
        row = await cast.fresh()
        without = await cast.in_database(
            lambda: revisions.propose(row, {}, {"fallback": None}, actor=ACTOR)
        )
        ahead = await look(cast, without)
        assert ahead.way == ChangeWay.REFUSED
        assert "alone" in str(ahead.why)


async def test_a_launch_that_is_started_again_meanwhile_gives_way(
    worker: Worker, heads: Heads
) -> None:
    async with running(worker, dp=1) as cast:
        old = (await primaries())[0]
        revision = await propose(cast, max_batch_size=8)
        await apply(cast, revision)
        await cast.until(lambda: there("candidate", "starting", "ready"))
        await cast.in_database(lambda: _crash(old))
        await at_rest(cast)
        after = (await primaries())[0]
        assert await state_of(revision) == "current"
        assert after.engine_config.max_batch_size == 8
        living = Replica.objects.filter(status__in=["starting", "ready", "draining"])
        assert await living.acount() == 1
        assert (await cast.fresh()).status == "ready"


async def test_a_live_setting_that_one_head_refuses_goes_back_everywhere(
    worker: Worker, heads: Heads, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, dict[str, object]] = {}

    def put(replica: Replica, path: str, body: dict[str, object]) -> tuple[int, bytes]:
        if replica.index == 0:  # The newest is asked first.
            return 500, b"no"
        told[path] = body
        return 200, b"{}"

    monkeypatch.setattr("dashboard.heads.put", put)
    monkeypatch.setattr(change_steps, "LIVE_TRIES", 2)
    async with running(worker, dp=2) as cast:
        revision = await propose(cast, max_waiting=64)
        assert (await look(cast, revision)).way == ChangeWay.LIVE
        await apply(cast, revision)
        await cast.until(change_ended("failed"))
        assert told == {"/limits": {"target_itl": None, "max_waiting": 512}}
        assert {one.engine_config.max_waiting for one in (await primaries()).values()} == {512}
        assert (await cast.fresh()).settings.get("max_waiting") != 64
        assert "HTTP 500" in str((await Revision.objects.aget(pk=revision.pk)).outcome)


@transaction.atomic
def _crash(replica: Replica) -> None:
    deployment = locked(replica.deployment_id)
    fail_replica(deployment, replica, Cause(Fault.EXIT, Sentence("It died.")))
