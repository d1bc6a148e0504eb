"""A death is explained by its root and repaired by itself."""

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard.lifecycle.failures import CRASHES_UNTIL_GIVING_UP, backoff
from dashboard.models import Deployment, Event, Job, Rank, Replica
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, worker

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)

NO_WORD = "There is no word from the agent of node-b; its engine goes on."
KILLED = "Rank 1 on node-b was killed by signal 9 (SIGKILL)."


async def kill_rank_1(cast: Fleet) -> None:
    cast.b.exit(":rank1", -9)
    await cast.b.report()


async def test_a_killed_rank_is_named_and_the_deployment_comes_back(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        first = await Replica.objects.aget()
        await kill_rank_1(cast)
        await cast.until(lambda: str(Deployment.objects.get().reason) == KILLED)
        assert (await cast.fresh()).status == "restarting"
        await cast.become_ready()
        second = await Replica.objects.filter(status="ready").aget()
        assert second.launch != first.launch
        assert second.token != first.token
        deployment = await cast.fresh()
        assert (deployment.generation, deployment.restarts) == (1, 1)
        assert str(deployment.reason) == ""
        assert await Event.objects.filter(message__startswith="Ready again after").aexists()


async def test_the_root_is_named_although_its_follow_up_is_reported_first(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        await cast.a.report(cast.a.engine("failed", "idle", "idle", detail="lost rank 1"))
        follow_up = "The head on node-a gave up: lost rank 1"
        await cast.until(lambda: str(Deployment.objects.get().reason) == follow_up)
        await kill_rank_1(cast)
        await cast.until(lambda: str(Deployment.objects.get().reason) == KILLED)
        first = await Replica.objects.order_by("pk").afirst()
        assert first is not None
        assert str(first.reason) == KILLED
        failed = await Event.objects.aget(level="error")
        assert failed.text == f"It failed: {KILLED}"


async def test_processes_ended_by_the_clean_up_are_not_taken_for_the_cause(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        cast.b.exit(":rank1", 1, words="ValueError: bad weights")
        await cast.b.report()
        cause = "Rank 1 on node-b ended with exit code 1. Its last words: ValueError: bad weights"
        await cast.until(lambda: str(Deployment.objects.get().reason) == cause)
        cast.a.exit(":rank0", -15, asked=True)
        await cast.a.report()
        await cast.until(
            lambda: Rank.objects.get(replica__status="failed", rank=0).exit_code == -15
        )
        assert str((await cast.fresh()).reason) == cause


async def test_a_process_that_was_asked_to_end_is_not_called_lost(worker: Worker) -> None:
    """Its report may still carry the number of the desired state before the next launch's."""
    async with fleet(worker) as cast:
        await cast.deploy()
        cast.b.exit(":rank1", 1, words="ValueError: bad weights")
        await cast.b.report()
        cause = "Rank 1 on node-b ended with exit code 1. Its last words: ValueError: bad weights"
        await cast.until(lambda: str(Deployment.objects.get().reason) == cause)
        old = cast.a.desired.generation
        cast.a.processes.clear()
        await cast.a.report(generation=old)
        gone = Rank.objects.filter(replica__status="failed", rank=0, status="exited")
        await cast.until(gone.exists)
        assert str((await cast.fresh()).reason) == cause
        assert str((await Replica.objects.filter(status="failed").aget()).reason) == cause


async def test_reports_about_an_ended_launch_change_nothing(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        old = cast.a.engine("failed", "idle", "idle")
        await kill_rank_1(cast)
        await cast.become_ready()
        await cast.a.report(old, cast.a.engine("ready", "idle", "idle"))
        await cast.b.log("nonsense:rank0", "a line of a launch nobody knows")
        await cast.b.report()
        await cast.a.beat()
        assert (await cast.fresh()).status == "ready"
        assert await Replica.objects.filter(status="failed").acount() == 1


def test_the_first_restart_is_immediate_and_later_ones_wait_longer() -> None:
    assert [backoff(crashes) for crashes in range(1, 9)] == [0, 2, 4, 8, 16, 32, 60, 60]


async def crash(cast: Fleet, times: int) -> None:
    failed = Replica.objects.filter(status="failed")
    for count in range(1, times + 1):
        await cast.launched()
        await kill_rank_1(cast)
        await cast.until(lambda count=count: failed.count() == count)  # type: ignore[misc]  # a default argument


async def test_a_crash_loop_is_given_up_with_the_reason_and_the_remedy(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.ask()
        await crash(cast, CRASHES_UNTIL_GIVING_UP)
        deployment = await cast.until_status("failed")
        assert "5 times within 10 minutes" in str(deployment.reason)
        assert KILLED in str(deployment.reason)
        assert "press Deploy" in str(deployment.reason)
        assert not await Job.objects.filter(status__in=["queued", "running"]).aexists()
        delays = [item.countdown for item in worker.history if item.name == "tandem.run_job"]
        assert {2.0, 4.0, 8.0} <= set(delays)


async def test_a_person_who_deploys_again_gets_fresh_attempts(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.ask()
        await crash(cast, CRASHES_UNTIL_GIVING_UP)
        await cast.until_status("failed")
        await cast.deploy()
        await kill_rank_1(cast)
        await cast.until_status("restarting")


async def test_a_node_that_stays_away_moves_its_ranks_to_the_one_that_is_left(
    worker: Worker,
) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        await cast.b.go()
        await cast.until(lambda: str(Deployment.objects.get().reason) == NO_WORD)
        assert (await cast.fresh()).status == "ready", "its engines may well go on"
        rank = await Rank.objects.aget(rank=1)
        assert (rank.status, str(rank.detail)) == ("waiting", "node-b is offline.")
        await cast.a.report(cast.a.engine("failed", "idle", "starting", detail="lost rank 1"))
        deployment = await cast.until_status("restarting")
        assert str(deployment.reason) == "node-b is offline."
        await cast.launched(cast.a)
        assert len(cast.a.desired.processes) == 3
        await cast.a.report(cast.a.engine("ready", "ready", "ready"))
        await cast.until_status("ready")
        newest = await Job.objects.afirst()
        assert newest is not None
        assert str((await newest.steps.aget(name="place")).detail).startswith(
            "Every rank on one node"
        )


async def test_without_a_place_it_waits_and_starts_once_a_node_is_back(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        for agent, name in ((cast.a, "node-a"), (cast.b, "node-b")):
            await agent.go()
            await cast.long_ago(name)
        await cast.reconcile()
        deployment = await cast.until_status("restarting")
        assert "is offline" in str(deployment.reason)
        assert not await Job.objects.filter(status__in=["queued", "running"]).aexists()
        async with cast.again("node-a") as a, cast.again("node-b") as b:
            cast.a, cast.b = a, b
            await cast.become_ready()


async def test_engines_that_ran_on_are_adopted_when_their_node_returns(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        launch = (await Replica.objects.aget()).launch
        processes = cast.b.processes
        await cast.b.go()
        await cast.until(lambda: str(Deployment.objects.get().reason) == NO_WORD)
        back = cast.dial_again("node-b")
        back.processes = processes
        async with back:
            await cast.a.report(cast.a.engine("ready", "idle", "idle"))
            await cast.until(lambda: not Deployment.objects.get().reason)
            replica = await Replica.objects.aget()
            assert (replica.launch, replica.status) == (launch, "ready")
            assert (await Rank.objects.aget(rank=1)).status == "ready"


async def test_an_agent_that_lost_its_engines_starts_them_again_for_the_same_launch(
    worker: Worker,
) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        launch = (await Replica.objects.aget()).launch
        await cast.b.go()
        async with cast.again("node-b") as b:
            reason = "Rank 1 on node-b is gone: its node's agent was restarted."
            await cast.until(lambda: str(Rank.objects.get(rank=1).detail) == reason)
            await b.told(launch)
            b.start_desired()
            await b.report()
            await cast.until(lambda: Rank.objects.get(rank=1).status == "starting")
            assert await Replica.objects.acount() == 1


async def test_old_crashes_do_not_count(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        for _ in range(2):
            await kill_rank_1(cast)
            await cast.become_ready()
        await Replica.objects.filter(status="failed").aupdate(
            ended_at=timezone.now() - timedelta(minutes=11)
        )
        await Job.objects.aupdate(created=timezone.now() - timedelta(minutes=20))
        worker.queue.clear()
        await kill_rank_1(cast)
        await cast.until_status("restarting")
        job = await Job.objects.filter(kind="restart").afirst()
        assert job is not None
        assert job.due_at is not None
        assert job.due_at - job.created < timedelta(seconds=1)


async def test_ranks_that_followed_their_head_are_not_taken_for_the_cause(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        cast.b.exit(":rank1", 0, words="The head asked this rank to stop.")
        await cast.b.report()
        await cast.until(lambda: Deployment.objects.get().status == "restarting")
        cast.a.exit(":head", 1, words="KeyError: 'x'", asked=True)
        await cast.a.report()
        cause = "The head on node-a ended with exit code 1. Its last words: KeyError: 'x'"
        await cast.until(lambda: str(Replica.objects.earliest("pk").reason) == cause)
