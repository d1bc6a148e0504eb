"""Nodes and samples that the telemetry tests share."""

import time
from collections.abc import Sequence

from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard.choices import DeploymentStatus, ReplicaStatus
from dashboard.models import Deployment, Model, Node, Rank, Replica
from monitoring.live.desk import publish
from monitoring.live.frames import Frame, Layouts
from monitoring.metrics import (
    CPU_UTILIZATION,
    GPU_UTILIZATION,
    MEMORY_TOTAL,
    MEMORY_USED,
    STEP_SECONDS,
    TIME_TO_FIRST_TOKEN,
    TOKENS_PER_SECOND,
)
from monitoring.packing import Packer
from monitoring.samples import Sample, measured, unavailable
from monitoring.storage.store import store

NO_GPU = "No supported accelerator was found."
NOTHING_GENERATED = "Nothing was generated in the last second."


def make_node(name: str = "box-1") -> Node:
    node = Node(name=name, address="127.0.0.1")
    node.issue_token()
    node.save()
    return node


def node_samples(cpu: float = 0.25) -> list[Sample]:
    return [
        measured(CPU_UTILIZATION, cpu, source="host: /proc/stat", scope="host"),
        measured(MEMORY_USED, 8e9, source="host: /proc/meminfo", scope="host"),
        measured(MEMORY_TOTAL, 16e9, source="host: /proc/meminfo", scope="host"),
        unavailable(GPU_UTILIZATION, NO_GPU, source="accelerator: /dev", scope="accelerator"),
    ]


def engine_samples(launch: str, rate: float | None = 40.0) -> list[Sample]:
    """What a head says about its engine and two ranks."""
    subject = f"launch:{launch}"
    speed = (
        unavailable(
            TOKENS_PER_SECOND, NOTHING_GENERATED, source="engine", scope="engine", subject=subject
        )
        if rate is None
        else measured(TOKENS_PER_SECOND, rate, source="engine", scope="engine", subject=subject)
    )
    return [
        speed,
        measured(TIME_TO_FIRST_TOKEN, 0.12, source="engine", scope="engine", subject=subject),
        *(
            measured(
                STEP_SECONDS,
                0.02 + rank / 100,
                source="engine",
                scope="engine",
                subject=f"{subject}:rank{rank}",
            )
            for rank in range(2)
        ),
    ]


def now() -> float:
    return time.time()


def launch(name: str, nodes: list[Node]) -> Deployment:
    """A ready deployment `smol` whose launch `name` has a rank on each of `nodes`."""
    model = Model.objects.create(
        name="smollm2", path="/m.gguf", revision="r", size_bytes=1, parameters=1, config={}
    )
    deployment = Deployment.objects.create(
        name="smol",
        model=model,
        status=DeploymentStatus.READY,
        wanted=True,
        settings={"tp": len(nodes)},
    )
    replica = Replica.objects.create(
        deployment=deployment,
        launch=name,
        token="secret",
        config={},
        head_node=nodes[0],
        host="127.0.0.1",
        http_port=1,
        control_port=2,
        status=ReplicaStatus.READY,
    )
    for index, node in enumerate(nodes):
        Rank.objects.create(replica=replica, rank=index, stage=0, stage_rank=index, node=node)
    return deployment


async def send(
    node: int, seq: int, at: float, samples: Sequence[Sample], layouts: Layouts | None = None
) -> Frame:
    """Checked, shown to whoever looks, and stored, at once."""
    frame = frame_of(node, seq, at, samples, layouts)
    publish(frame)
    if frame.readings:
        await sync_to_async(store)([frame])
    return frame


def frame_of(
    node: int, seq: int, at: float, samples: Sequence[Sample], layouts: Layouts | None = None
) -> Frame:
    """Checked, on its way to the store; as an agent sends it over a connection of its own."""
    layouts, packed = layouts or Layouts(), Packer().pack(samples)
    refused = layouts.learn(layout for layout, _numbers in packed)
    readings = [(layout.number, numbers) for layout, numbers in packed]
    frame = layouts.frame(node, seq, at, readings, timezone.now())
    frame.refused[:0] = refused
    return frame
