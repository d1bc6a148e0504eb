"""Members of one group as threads of the test, over the transport that ranks use."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

from torch._C._distributed_c10d import HashStore

from engine.config import EngineConfig, ParallelPlan, Transport
from engine.parallel import Group, Mesh, build_mesh

SECONDS = 60.0

T = TypeVar("T")


def on_meshes(plan: str, transport: Transport, work: Callable[[Mesh], T]) -> list[T]:
    """What `work` answers on the mesh of every rank, in rank order."""
    config = EngineConfig(plan=ParallelPlan.parse(plan), transport=transport)
    store = HashStore()

    def live(rank: int) -> T:
        with closing(build_mesh(config, rank, "127.0.0.1", "token", store)) as mesh:
            return work(mesh)

    with ThreadPoolExecutor(config.plan.world_size) as pool:
        return list(pool.map(live, range(config.plan.world_size), timeout=SECONDS))


def on_members(size: int, transport: Transport, work: Callable[[Group], T]) -> list[T]:
    """What `work` answers on every member of one group, in order."""
    return on_meshes(f"tp={size}", transport, lambda mesh: work(mesh.tp))
