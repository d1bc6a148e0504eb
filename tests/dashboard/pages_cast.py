"""The cast of the pages' tests: who looks, and a small fleet to look at."""

import msgspec
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.choices import NodeStatus, RankStatus
from dashboard.models import Deployment, Model, Node, Rank, Replica
from engine.config import EngineConfig, ParallelPlan
from engine.protocol.agent import Inventory
from tests.shapes import SMOLLM2

HARDWARE = Inventory(
    hostname="box-1",
    address="10.0.0.1",
    platform="Linux x86_64",
    cpu_model="Quiet Processor 9",
    cpu_count=16,
    memory_bytes=64 * 2**30,
    python="3.11.7",
    engine_version="0.1.0",
    instruction_sets=["avx2"],
)


@pytest.fixture
def operator(db: None) -> Client:
    """Signed in with the role to change things."""
    client = Client()
    client.force_login(User.objects.create_superuser("ada", password="correct horse"))
    return client


@pytest.fixture
def viewer(db: None) -> Client:
    """Signed in, may look."""
    client = Client()
    client.force_login(User.objects.create_user("lin", password="correct horse"))
    return client


def make_model(name: str = "smollm2-135m") -> Model:
    return Model.objects.create(
        name=name,
        path=f"/models/{name}.gguf",
        revision=name,
        size_bytes=98_000_000,
        parameters=134_515_008,
        config=msgspec.to_builtins(SMOLLM2),
    )


def make_node(name: str, status: NodeStatus = NodeStatus.ONLINE) -> Node:
    node = Node(name=name, address="10.0.0.1", status=status)
    node.issue_token()
    if status == NodeStatus.ONLINE:
        node.inventory = msgspec.to_builtins(HARDWARE)
        node.last_seen = timezone.now()
    node.save()
    return node


def make_smol() -> Deployment:
    return Deployment.objects.create(name="smol", model=make_model())


def make_launch(deployment: Deployment, *nodes: Node) -> Replica:
    """One rank a node, still loading: nothing about it has been measured."""
    plan = ParallelPlan(tp=deployment.tp, pp=deployment.pp)
    replica = Replica.objects.create(
        deployment=deployment,
        launch=f"launch-{deployment.name}",
        token="launch-secret",
        config=msgspec.to_builtins(EngineConfig(plan=plan)),
        head_node=nodes[0],
        host="10.0.0.1",
        http_port=21000,
        control_port=21001,
    )
    for index, node in enumerate(nodes):
        Rank.objects.create(
            replica=replica,
            rank=index,
            stage=plan.stage(index),
            stage_rank=plan.stage_rank(index),
            node=node,
            status=RankStatus.LOADING,
            progress=0.25,
        )
    return replica


def body(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return answer.content.decode()
