"""A deployment goes from asked for to ready, and says what it is at."""

import pytest

from dashboard.models import Event, Job, PortLease, Rank, Replica
from tests.dashboard.fleet_cast import Worker, fleet, worker

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_deploy_over_two_nodes_becomes_ready(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        deployment = await cast.fresh()
        assert (deployment.status, deployment.generation) == ("ready", 1)
        assert str(deployment.reason) == ""
        ranks = [rank async for rank in Rank.objects.select_related("node").order_by("rank")]
        assert [(r.node.name, r.status, r.kv_heads, r.kernel) for r in ranks] == [
            ("node-a", "ready", 2, "fp32"),
            ("node-b", "ready", 1, "fp32"),
        ]
        await cast.until(lambda: Job.objects.get().status == "done")
        job = await Job.objects.aget()
        steps = [(s.name, s.status) async for s in job.steps.all()]
        assert steps == [
            (name, "done") for name in ("check", "plan", "place", "start", "load", "verify")
        ]
        ready = await Event.objects.aget(message__startswith="Ready after")
        assert ready.replica_id == ranks[0].replica_id


async def test_progress_of_every_rank_is_shown_while_it_loads(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.ask()
        await cast.launched()
        await cast.a.report(cast.a.engine("loading", "loading", "loading", progress=0.63))
        await cast.until(
            lambda: "rank 1: Loading 63%" in str(Job.objects.get().steps.get(name="load").detail)
        )


async def test_the_token_and_the_addresses_reach_every_process(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        replica = await Replica.objects.aget()
        specs = [*cast.a.desired.processes, *cast.b.desired.processes]
        assert {spec.token for spec in specs} == {replica.token}
        assert [(spec.role, spec.rank, spec.host) for spec in specs] == [
            ("head", None, "10.0.0.1"),
            ("rank", 0, "10.0.0.1"),
            ("rank", 1, "10.0.0.2"),
        ]
        assert {str(spec.http) for spec in specs} == {f"10.0.0.1:{replica.http_port}"}
        assert await PortLease.objects.acount() == 2


async def test_a_stop_ends_everything_and_gives_the_ports_back(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.deploy()
        await cast.stop()
        await cast.ended()
        deployment = await cast.until_status("stopped")
        assert not deployment.wanted
        assert (await Replica.objects.aget()).status == "stopped"
        await cast.until(lambda: not PortLease.objects.exists())
