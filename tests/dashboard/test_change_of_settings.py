"""New settings are tried beside the old ones, which answer until the new ones have proved good."""

from typing import Any

import pytest

from dashboard import canary, lifecycle
from dashboard.audit import Actor
from dashboard.canary import CanaryError, Measured
from dashboard.choices import ACTIVE_JOB_STATUSES
from dashboard.configuration.declared import SettingsRefused
from dashboard.errors import StatusConflict
from dashboard.jobs import change as change_steps
from dashboard.lifecycle import revisions
from dashboard.lifecycle.preview import ChangeWay, Preview
from dashboard.models import Deployment, Event, Job, Model, Node, Replica, Revision, Slot
from tests.dashboard.fake_agent import FakeAgent
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, worker
from tests.dashboard.test_fallback import live, there

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor("ops", None, "form", "10.0.0.7")
GOOD = Measured(nats=3.0, first_token=0.1, per_token=0.02)


class Heads:
    """What launches answer to the canary; by launch, else `GOOD`."""

    def __init__(self) -> None:
        self.answers: dict[str, Measured | CanaryError] = {}
        self.later: Measured | CanaryError | None = None
        """Of every launch that was not there yet when this was set."""
        self.known: set[str] = set()

    def measure(self, replica: Replica, name: str) -> Measured:
        answer: Any = self.answers.get(replica.launch, GOOD)
        if self.later is not None and replica.launch not in self.known:
            answer = self.later
        if isinstance(answer, CanaryError):
            raise answer
        assert isinstance(answer, Measured)
        return answer


@pytest.fixture
def heads(monkeypatch: pytest.MonkeyPatch) -> Heads:
    heads = Heads()
    monkeypatch.setattr(canary, "measure", heads.measure)
    monkeypatch.setattr(change_steps, "WATCH_SECONDS", 0.2)
    monkeypatch.setattr("dashboard.jobs.launch.GATE_PAUSE", 0.05)
    return heads


async def at_rest(cast: Fleet) -> None:
    await cast.until(lambda: not Job.objects.filter(status__in=ACTIVE_JOB_STATUSES).exists())


async def propose(cast: Fleet, **values: object) -> Revision:
    deployment = await cast.fresh()
    revision: Revision = await cast.in_database(
        lambda: revisions.propose(deployment, values, actor=ACTOR, why="a try")
    )
    return revision


async def apply(cast: Fleet, revision: Revision) -> None:
    await cast.in_database(lambda: revisions.apply(again(revision), ACTOR))


def again(revision: Revision) -> Revision:
    return Revision.objects.select_related("deployment__model", "replaces").get(pk=revision.pk)


async def look(cast: Fleet, revision: Revision) -> Preview:
    found: Preview = await cast.in_database(lambda: revisions.preview(again(revision)))
    return found


async def says_ready(agent: FakeAgent, *launches: Replica) -> None:
    await agent.told_of(*(launch.launch for launch in launches))
    agent.start_desired()
    await agent.report(
        *(agent.engine_of(launch.launch, "ready", "ready", "ready") for launch in launches)
    )


async def both_agents(cast: Fleet, *launches: Replica) -> None:
    """Each launch runs over both nodes, its head on node-a."""
    await cast.b.told_of(*(launch.launch for launch in launches))
    cast.b.start_desired()
    await cast.b.report()
    await says_ready(cast.a, *launches)


async def ended(cast: Fleet, left: Replica) -> None:
    """What is not wanted any more has ended on both nodes."""
    for agent in (cast.b, cast.a):
        await agent.told(left.launch)
        agent.start_desired()
    await cast.b.report()
    await cast.a.report(cast.a.engine_of(left.launch, "ready", "ready", "ready"))


async def changing(cast: Fleet, heads: Heads, **values: object) -> tuple[Replica, Revision]:
    """The deployment is ready, and a change was asked for: the launch of before, the revision."""
    await cast.deploy()
    await at_rest(cast)
    old = await live("primary")
    heads.known = {old.launch}
    revision = await propose(cast, **values)
    await apply(cast, revision)
    return old, revision


async def state_of(revision: Revision) -> str:
    return (await Revision.objects.aget(pk=revision.pk)).state


async def test_the_old_launch_answers_until_the_new_one_has_proved_itself(
    worker: Worker, heads: Heads
) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        old, revision = await changing(cast, heads, kv_cache_tokens=2048)
        await cast.until(lambda: there("candidate", "starting"))
        new = await live("candidate")
        assert new.engine_config.kv_cache_tokens == 2048
        assert (await live("primary")).pk == old.pk
        await both_agents(cast, old, new)
        await cast.until(lambda: there("retiring", "stopping"))
        assert (await live("primary")).pk == new.pk
        assert (await cast.fresh()).settings["kv_cache_tokens"] == 2048
        await ended(cast, new)
        await at_rest(cast)
        assert await state_of(revision) == "current"
        assert (await cast.fresh()).status == "ready"
        assert await Slot.objects.acount() == 1
        assert not await Replica.objects.filter(status="failed").aexists()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Measured(nats=10.5, first_token=0.1, per_token=0.02), "noise"),
        (Measured(nats=4.0, first_token=0.1, per_token=0.02), "much worse"),
        (Measured(nats=3.0, first_token=9.0, per_token=0.02), "too slow"),
        (CanaryError("HTTP 500"), "does not answer as it should"),
    ],
)
async def test_what_does_not_prove_itself_never_answers_anybody(
    worker: Worker, heads: Heads, answer: Measured | CanaryError, why: str
) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        old, revision = await changing(cast, heads, kv_cache_tokens=2048)
        heads.later = answer
        await cast.until(lambda: there("candidate", "starting"))
        new = await live("candidate")
        await both_agents(cast, old, new)
        await cast.until(lambda: Job.objects.filter(kind="change", status="failed").exists())
        assert (await live("primary")).pk == old.pk
        row = await Revision.objects.aget(pk=revision.pk)
        assert row.state == "failed"
        assert why in str(row.outcome)
        assert (await cast.fresh()).settings["kv_cache_tokens"] == 1024
        assert (await cast.fresh()).status == "ready"
        assert await Event.objects.filter(message__contains="was not taken").aexists()


async def test_a_crash_at_load_changes_nothing(worker: Worker, heads: Heads) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        old, revision = await changing(cast, heads, kv_cache_tokens=2048)
        await cast.until(lambda: there("candidate", "starting"))
        new = await live("candidate")
        await cast.a.told_of(new.launch)
        cast.a.start_desired()
        key = next(key for key in cast.a.processes if key.startswith(new.launch))
        cast.a.exit(key, 1, "out of memory")
        await cast.a.report(cast.a.engine_of(old.launch, "ready", "ready", "ready"))
        await cast.until(lambda: Job.objects.filter(kind="change", status="failed").exists())
        assert (await live("primary")).pk == old.pk
        assert await state_of(revision) == "failed"
        assert (await cast.fresh()).restarts == 0


async def test_what_goes_wrong_once_it_answers_is_taken_back(
    worker: Worker, heads: Heads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_steps, "WATCH_SECONDS", 60.0)
    async with fleet(worker, max_model_len=1000) as cast:
        old, revision = await changing(cast, heads, kv_cache_tokens=2048)
        await cast.until(lambda: there("candidate", "starting"))
        new = await live("candidate")
        await both_agents(cast, old, new)
        await cast.until(lambda: there("retiring", "draining"))
        assert (await live("primary")).pk == new.pk
        key = next(key for key in cast.a.processes if key.startswith(new.launch))
        cast.a.exit(key, -9)
        await cast.a.report(cast.a.engine_of(old.launch, "ready", "ready", "ready"))
        await cast.until(lambda: Job.objects.filter(kind="change", status="failed").exists())
        await at_rest(cast)
        assert (await live("primary")).pk == old.pk
        assert (await live("primary")).status == "ready"
        assert await state_of(revision) == "failed"
        assert (await cast.fresh()).restarts == 0
        assert await Replica.objects.acount() == 2
        row = await Replica.objects.aget(pk=new.pk)
        assert (row.role, row.status) == ("candidate", "failed")
        assert str(row.reason) in str((await Revision.objects.aget(pk=revision.pk)).outcome)


async def test_without_room_for_both_the_old_one_ends_first(worker: Worker, heads: Heads) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        await cast.deploy()
        await at_rest(cast)
        old = await live("primary")
        planned = max([rank.planned_bytes or 0 async for rank in old.ranks.all()])
        floor = (16 * 2**30 - int(planned * 1.5) - 300 * 2**20) // 2**20
        await Node.objects.aupdate(settings={"memory_floor_mb": floor})
        revision = await propose(cast, kv_cache_tokens=1040)
        ahead = await look(cast, revision)
        assert ahead.way == ChangeWay.IN_PLACE
        assert ahead.pause_seconds is not None
        await apply(cast, revision)
        await cast.until(lambda: there("primary", "stopping"))
        await cast.ended()
        await cast.until(lambda: there("candidate", "starting"))
        new = await live("candidate")
        await both_agents(cast, new)
        await at_rest(cast)
        assert (await live("primary")).pk == new.pk
        assert await state_of(revision) == "current"


async def test_in_place_a_bad_one_gives_way_to_the_old_settings(
    worker: Worker, heads: Heads
) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        await cast.deploy()
        await at_rest(cast)
        old = await live("primary")
        heads.known, heads.later = {old.launch}, CanaryError("HTTP 500")
        planned = max([rank.planned_bytes or 0 async for rank in old.ranks.all()])
        floor = (16 * 2**30 - int(planned * 1.5) - 300 * 2**20) // 2**20
        await Node.objects.aupdate(settings={"memory_floor_mb": floor})
        revision = await propose(cast, kv_cache_tokens=1040)
        await apply(cast, revision)
        await cast.until(lambda: there("primary", "stopping"))
        await cast.ended()
        await cast.until(lambda: there("candidate", "starting"))
        new = await live("candidate")
        await both_agents(cast, new)
        await cast.until(lambda: there("candidate", "stopping"))
        await cast.ended()
        await cast.until(lambda: there("primary", "starting"))
        again = await live("primary")
        assert again.engine_config.kv_cache_tokens == 1024
        await both_agents(cast, again)
        await at_rest(cast)
        assert (await cast.fresh()).status == "ready"
        assert await state_of(revision) == "failed"


async def test_in_place_nothing_ends_while_the_models_file_is_gone(
    worker: Worker, heads: Heads
) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        await cast.deploy()
        await at_rest(cast)
        old = await live("primary")
        planned = max([rank.planned_bytes or 0 async for rank in old.ranks.all()])
        floor = (16 * 2**30 - int(planned * 1.5) - 300 * 2**20) // 2**20
        await Node.objects.aupdate(settings={"memory_floor_mb": floor})
        revision = await propose(cast, kv_cache_tokens=1040)
        assert (await look(cast, revision)).way == ChangeWay.IN_PLACE
        await Model.objects.aupdate(path="/nowhere/model.gguf")
        await apply(cast, revision)
        await at_rest(cast)
        assert await state_of(revision) == "failed"
        assert "/nowhere/model.gguf" in str((await Revision.objects.aget(pk=revision.pk)).outcome)
        assert [row.pk async for row in Replica.objects.all()] == [old.pk]
        assert ((await live("primary")).status, (await cast.fresh()).status) == ("ready", "ready")


async def test_what_does_not_fit_at_all_is_refused_with_the_numbers(
    worker: Worker, heads: Heads
) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        await cast.deploy()
        await at_rest(cast)
        revision = await propose(cast, kv_cache_tokens=50_000_000)
        ahead = await look(cast, revision)
        assert ahead.way == ChangeWay.REFUSED
        assert "too little" in str(ahead.why)
        with pytest.raises(StatusConflict):
            await apply(cast, revision)
        assert not await Job.objects.filter(kind="change").aexists()


async def test_wrong_values_are_told_one_by_one(worker: Worker, heads: Heads) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        with pytest.raises(SettingsRefused) as refused:
            await propose(cast, tp=7, kv_cache_tokens="many", dtype="int3")
        assert set(refused.value.errors) == {"kv_cache_tokens", "dtype"}


async def test_a_form_sent_twice_is_one_revision(worker: Worker, heads: Heads) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        first = await propose(cast, kv_cache_tokens=2048)
        second = await propose(cast, kv_cache_tokens=2048)
        assert first.pk == second.pk
        numbers = [one.number async for one in Revision.objects.order_by("number")]
        assert numbers == [1, 2]


async def test_of_two_changes_the_later_one_is_told_of_the_first(
    worker: Worker, heads: Heads
) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        _old, _first = await changing(cast, heads, kv_cache_tokens=2048)
        second = await propose(cast, kv_cache_tokens=4096)
        with pytest.raises(StatusConflict, match="is being applied"):
            await apply(cast, second)
        assert await Job.objects.filter(kind="change").acount() == 1


async def test_an_earlier_revision_is_one_click_away(worker: Worker, heads: Heads) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        first = await propose(cast, kv_cache_tokens=2048)
        await apply(cast, first)  # Nothing runs: in use at once.
        assert (await cast.fresh()).kv_cache_tokens == 2048
        beginning = await Revision.objects.aget(number=1)
        await cast.in_database(lambda: revisions.back_to(again(beginning), ACTOR))
        assert (await cast.fresh()).kv_cache_tokens == 1024
        states = [one.state async for one in Revision.objects.order_by("number")]
        assert states == ["past", "past", "current"]


async def test_a_stop_in_the_middle_ends_both(worker: Worker, heads: Heads) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        _old, revision = await changing(cast, heads, kv_cache_tokens=2048)
        await cast.until(lambda: there("candidate", "starting"))
        await cast.in_database(lambda: lifecycle.request_stop(Deployment.objects.get(), "me"))
        await cast.ended()
        await cast.until_status("stopped")
        await cast.reconcile()
        assert await state_of(revision) == "failed"
        assert not await Replica.objects.filter(status__in=["starting", "ready"]).aexists()
