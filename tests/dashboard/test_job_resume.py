"""A job survives the worker and the broker."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from dashboard import lifecycle
from dashboard.jobs import runner
from dashboard.lifecycle import jobs
from dashboard.models import Deployment, Job, JobStep, Replica
from tests.dashboard.fleet_cast import Worker, fleet, make_deployment, worker

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)


def long_ago() -> None:
    past = timezone.now() - timedelta(minutes=30)
    Job.objects.update(due_at=past, touched_at=past)
    JobStep.objects.filter(status="running").update(deadline_at=past + timedelta(minutes=1))


async def test_a_job_whose_worker_died_goes_on_where_it_was(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.ask()
        await cast.launched()
        worker.queue.clear()
        job = await Job.objects.aget()
        assert await cast.in_database(lambda: jobs.claim(job.pk, job.ticket)), "a worker takes it"
        await cast.in_database(long_ago)
        await cast.reconcile()
        await cast.a.report(cast.a.engine("ready", "ready", "ready"))
        await cast.until(lambda: Job.objects.get().status == "done")
        assert await Replica.objects.acount() == 1


def test_a_ticket_counts_once(worker: Worker) -> None:
    lifecycle.create_node("box", "10.0.0.1")
    job = lifecycle.request_deploy(make_deployment(), "someone")
    ticket = worker.queue[0].arguments[1]
    runner.run(job.pk, ticket)
    queued = len(worker.queue)
    runner.run(job.pk, ticket)
    assert len(worker.queue) == queued


def test_time_without_a_worker_is_not_held_against_a_step(worker: Worker) -> None:
    lifecycle.create_node("box", "10.0.0.1")
    lifecycle.request_deploy(make_deployment(), "someone")
    worker.work()
    worker.queue.clear()
    long_ago()
    lifecycle.reconcile()
    worker.work()
    assert Deployment.objects.get().status == "starting", "it still waits for its node"


def test_a_job_that_kills_every_worker_is_given_up(worker: Worker) -> None:
    lifecycle.create_node("box", "10.0.0.1")
    lifecycle.request_deploy(make_deployment(), "someone")
    for _ in range(jobs.MAX_RESUMES + 1):
        worker.queue.clear()
        long_ago()
        lifecycle.reconcile()
    deployment = Deployment.objects.get()
    assert deployment.status == "failed"
    assert "worker" in str(deployment.reason)


def test_a_job_that_the_database_failed_is_taken_up_again_at_once(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    lifecycle.request_stop(make_deployment(status="ready"), "someone")

    def fail(row: JobStep, seconds: float) -> None:
        raise OperationalError("couldn't get a connection")

    with monkeypatch.context() as broken:
        broken.setattr(jobs, "start_step", fail)
        with pytest.raises(OperationalError):
            worker.work()
    assert [item.name for item in worker.queue] == ["tandem.run_job"]
    worker.work()
    assert Deployment.objects.get().status == "stopped"


def test_a_stop_whose_message_was_lost_is_taken_up_again(worker: Worker) -> None:
    lifecycle.request_stop(make_deployment(status="ready"), "someone")
    worker.queue.clear()
    Job.objects.all().delete()
    lifecycle.reconcile()
    worker.work()
    worker.work()
    assert Deployment.objects.get().status == "stopped"


def test_a_newer_request_ends_the_older_job_whatever_its_message_does(worker: Worker) -> None:
    lifecycle.create_node("box", "10.0.0.1")
    deployment = make_deployment()
    old = lifecycle.request_deploy(deployment, "one")
    Deployment.objects.update(generation=5)
    worker.work()
    old.refresh_from_db()
    assert old.status == "cancelled"
    assert not Replica.objects.exists()
