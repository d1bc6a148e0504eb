"""Of two people who press at the same moment exactly one wins."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from dashboard import lifecycle
from dashboard.choices import DeploymentStatus
from dashboard.errors import StatusConflict
from dashboard.models import Deployment, Event, Job
from tests.dashboard.fleet_cast import Worker, make_deployment, worker

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(request: Callable[[Deployment, object], Job], people: int) -> list[bool]:
    """Everybody has read the same row; who was let through?"""
    pk = Deployment.objects.get().pk
    barrier = Barrier(people, timeout=20)

    def press(person: int) -> bool:
        try:
            deployment = Deployment.objects.get(pk=pk)
            barrier.wait()
            request(deployment, f"person {person}")
        except StatusConflict:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(people) as pool:
        return list(pool.map(press, range(people), timeout=60))


@pytest.mark.parametrize(
    ("before", "request_", "after"),
    [
        ("stopped", lifecycle.request_deploy, "starting"),
        ("failed", lifecycle.request_deploy, "starting"),
        ("ready", lifecycle.request_stop, "stopping"),
        ("ready", lifecycle.request_restart, "restarting"),
    ],
)
def test_exactly_one_of_many_wins(
    worker: Worker, before: str, request_: Callable[[Deployment, object], Job], after: str
) -> None:
    make_deployment(status=before)
    assert at_once(request_, 4).count(True) == 1
    deployment = Deployment.objects.get()
    assert (deployment.status, deployment.generation) == (after, 1)
    assert Job.objects.count() == 1
    assert Event.objects.count() == 1
    assert [item.name for item in worker.queue] == ["tandem.run_job"]


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        ("ready", lifecycle.request_deploy),
        ("starting", lifecycle.request_deploy),
        ("stopped", lifecycle.request_stop),
        ("stopping", lifecycle.request_stop),
        ("stopped", lifecycle.request_restart),
        ("restarting", lifecycle.request_restart),
    ],
)
def test_what_the_status_does_not_allow_is_refused_with_the_status(
    worker: Worker, status: str, request_: Callable[[Deployment, object], Job]
) -> None:
    deployment = make_deployment(status=status)
    with pytest.raises(StatusConflict, match=str(DeploymentStatus(status).label)):
        request_(deployment, "someone")
    assert not worker.queue
    assert Deployment.objects.get().generation == 0


def test_a_stop_cancels_the_deploy_that_is_under_way(worker: Worker) -> None:
    deployment = make_deployment()
    deploy = lifecycle.request_deploy(deployment, "one")
    lifecycle.request_stop(deployment, "other")
    deploy.refresh_from_db()
    assert deploy.status == "cancelled"
    worker.work()
    worker.work()
    assert Deployment.objects.get().status == "stopped"


def test_a_running_deployment_is_not_deleted(worker: Worker) -> None:
    deployment = make_deployment(status="ready")
    with pytest.raises(StatusConflict, match="stop it first"):
        lifecycle.delete_deployment(deployment, "someone")
    deployment = make_deployment("other")
    lifecycle.delete_deployment(deployment, "someone")
    assert [d.name for d in Deployment.objects.all()] == ["chat"]


def test_a_deployment_deleted_half_way_leaves_no_job_behind(worker: Worker) -> None:
    deployment = make_deployment()
    lifecycle.request_deploy(deployment, "someone")
    Deployment.objects.get().delete()
    worker.work()
    assert not Job.objects.exists()
    assert not worker.queue
