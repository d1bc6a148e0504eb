"""What 0.2 left in the database goes on under this release."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from dashboard import lifecycle
from dashboard.models import Deployment, Job, Replica, Slot
from tests.dashboard.fleet_cast import Worker, worker
from tests.dashboard.gateway_cast import SHAPE

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)
RELEASE_0_2 = "0002_engine_choices"


def migrate(target: str) -> Any:
    """Models as they are at that migration."""
    executor = MigrationExecutor(connection)
    goal = [("dashboard", target)]
    executor.migrate(goal)
    return MigrationExecutor(connection).loader.project_state(goal).apps


def update() -> None:
    """To this release, every application."""
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


@pytest.fixture
def old() -> Iterator[Any]:
    try:
        yield migrate(RELEASE_0_2)
    finally:
        update()


def stage(old: Any, status: str, replica_status: str) -> None:
    """A deployment over two ranks, with its launch and the job that started it, as 0.2 had them."""
    model = old.get_model("dashboard", "Model").objects.create(
        name="smollm2", path="/m.gguf", size_bytes=1, parameters=1, config=SHAPE
    )
    node = old.get_model("dashboard", "Node").objects.create(
        name="node-a", address="127.0.0.1", token_hash="x", status="online"
    )
    deployment = old.get_model("dashboard", "Deployment").objects.create(
        name="chat", model=model, tp=2, wanted=True, status=status, generation=1
    )
    replica = old.get_model("dashboard", "Replica").objects.create(
        deployment=deployment,
        launch="old",
        token="t",
        config={"plan": {"tp": 2, "pp": 1}, "dtype": "fp32", "transport": "tcp"},
        head_node=node,
        host="127.0.0.1",
        http_port=1,
        control_port=2,
        status=replica_status,
    )
    for rank in range(2):
        old.get_model("dashboard", "Rank").objects.create(
            replica=replica, rank=rank, stage=0, tp_rank=rank, node=node, status="ready"
        )
    going = "done" if status == "ready" else "running"
    old.get_model("dashboard", "Job").objects.create(
        deployment=deployment, kind="deploy", generation=1, status=going, ticket=2
    )


@pytest.mark.parametrize(("status", "launch"), [("ready", "ready"), ("starting", "starting")])
def test_a_deployment_that_ran_is_started_again(
    worker: Worker, old: Any, status: str, launch: str
) -> None:
    stage(old, status, launch)
    update()
    replica = Replica.objects.get()
    assert (replica.role, replica.index, replica.engine_config.plan.world_size) == ("primary", 0, 2)
    lifecycle.resume_on(["node-a"])
    lifecycle.reconcile()
    worker.work()
    deployment = Deployment.objects.get()
    assert deployment.status in ("restarting", "starting")
    assert Slot.objects.get().role == "primary"
    assert not Job.objects.filter(slot=None, status__in=["queued", "running", "failed"]).exists()
    assert Job.objects.get(slot__isnull=False).status == "running"
    assert Replica.objects.get(launch="old").status == "stopped"


def test_one_that_had_failed_stays_so(worker: Worker, old: Any) -> None:
    stage(old, "failed", "failed")
    old.get_model("dashboard", "Job").objects.update(status="failed")
    update()
    lifecycle.reconcile()
    worker.work()
    assert Deployment.objects.get().status == "failed"
    assert Job.objects.count() == 1
