"""A worker that is killed in any step of a change: the next one takes it to its right end."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard.canary import CanaryError
from dashboard.jobs.change import Compare, Replace, SeeOff, Take
from dashboard.lifecycle.preview import ChangeWay
from dashboard.models import Job, Replica, Slot
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, worker
from tests.dashboard.test_change_of_settings import (
    Heads,
    apply,
    both_agents,
    changing,
    ended,
    heads,
    look,
    propose,
    state_of,
)
from tests.dashboard.test_change_of_several import room_for, running
from tests.dashboard.test_fallback import live, there

__all__ = ["heads", "worker"]

pytestmark = pytest.mark.django_db(transaction=True)

MOMENTS = [
    (Compare, "run"),
    (Replace, "_bring_up"),
    (Replace, "_prove"),
    (Replace, "_switch"),
    (Replace, "_watch"),
    (Take, "run"),
    (SeeOff, "run"),
]


class Killed(BaseException):
    """The worker's process is gone, with all that it had not written down."""


class Killer:
    """Lets the work be done once, and the worker die before it can tell."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        self.done = False
        real: Callable[..., Any] = getattr(owner, name)

        def deadly(step: object, job: Job) -> Any:
            outcome = real(step, job)
            if not self.done:
                self.done = True
                raise Killed
            return outcome

        monkeypatch.setattr(owner, name, deadly)


async def until(cast: Fleet, done: Callable[[], bool]) -> None:
    """Workers come again after they are killed, and find what was left long ago."""
    try:
        await cast.until(done)
    except Killed:
        past = timezone.now() - timedelta(minutes=5)
        await Job.objects.filter(kind="change", status="running").aupdate(due_at=past)
        await cast.reconcile()
        await cast.until(done)


@pytest.mark.parametrize(("owner", "name"), MOMENTS, ids=lambda it: getattr(it, "__name__", it))
async def test_the_change_is_made_exactly_once(
    worker: Worker, heads: Heads, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        killer = Killer(monkeypatch, owner, name)
        old, revision = await changing(cast, heads, kv_cache_tokens=2048)
        await until(cast, lambda: there("candidate", "starting"))
        new = await live("candidate")
        await both_agents(cast, old, new)
        await until(cast, lambda: there("retiring", "stopping"))
        await ended(cast, new)
        await until(cast, lambda: Job.objects.filter(kind="change", status="done").exists())
        assert killer.done
        assert await state_of(revision) == "current"
        assert (await live("primary")).pk == new.pk
        assert (await cast.fresh()).status == "ready"
        assert await Replica.objects.acount() == 2
        assert await Slot.objects.acount() == 1


@pytest.mark.parametrize(
    ("owner", "name"), MOMENTS[1:3], ids=lambda it: getattr(it, "__name__", it)
)
async def test_a_bad_one_is_still_taken_back(
    worker: Worker, heads: Heads, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    async with fleet(worker, max_model_len=1000) as cast:
        Killer(monkeypatch, owner, name)
        old, revision = await changing(cast, heads, kv_cache_tokens=2048)
        heads.later = CanaryError("HTTP 500")
        await until(cast, lambda: there("candidate", "starting"))
        new = await live("candidate")
        await both_agents(cast, old, new)
        await until(cast, lambda: Job.objects.filter(kind="change", status="failed").exists())
        assert (await live("primary")).pk == old.pk
        assert await state_of(revision) == "failed"


@pytest.mark.parametrize("name", ["_make_room", "_bring_up", "_switch"])
async def test_in_place_too(
    worker: Worker, heads: Heads, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with running(worker, dp=1) as cast:
        await room_for({"node-a": 1, "node-b": 0})
        killer = Killer(monkeypatch, Replace, name)
        revision = await propose(cast, max_batch_size=8)
        assert (await look(cast, revision)).way == ChangeWay.IN_PLACE
        await apply(cast, revision)
        await until(cast, Job.objects.filter(kind="change", status="done").exists)
        assert killer.done
        assert await state_of(revision) == "current"
        assert (await live("primary")).engine_config.max_batch_size == 8
        assert (await cast.fresh()).status == "ready"
        assert await Replica.objects.acount() == 2
