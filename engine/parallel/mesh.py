"""From a plan to the groups a rank belongs to."""

import socket
from dataclasses import dataclass
from datetime import timedelta

from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from engine.config import ParallelPlan
from engine.parallel.group import Alone, Group, LinkedGroup
from engine.parallel.links import GlooLinks

COLLECTIVE_TIMEOUT = timedelta(seconds=120)
"""The head notices a hung step long before; this only keeps an orphan from waiting forever."""


@dataclass(frozen=True)
class Mesh:
    """This rank's groups: `tp` inside its stage, `pipeline` across the stages."""

    tp: Group
    pipeline: Group
    transport: str


def open_store(host: str, timeout: timedelta) -> TCPStore:
    """The rendezvous of a launch, on a free port of `host` and on no other address."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.bind((host, 0))
    listener.listen(128)
    port = listener.getsockname()[1]
    return TCPStore(
        host,
        port,
        is_master=True,
        wait_for_workers=False,
        timeout=timeout,
        master_listen_fd=listener.detach(),
    )


def join_store(host: str, port: int, timeout: timedelta) -> TCPStore:
    return TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=timeout)


def build_mesh(plan: ParallelPlan, rank: int, host: str, store: Store | None) -> Mesh:
    """Connect to the peers; raises RuntimeError when one does not appear in time."""
    stage, tp_rank = plan.stage(rank), plan.tp_rank(rank)
    tp = _group(store, f"tp{stage}", tp_rank, plan.tp, host)
    pipeline = _group(store, f"pp{tp_rank}", stage, plan.pp, host)
    return Mesh(tp, pipeline, "gloo" if plan.world_size > 1 else "none")


def _group(store: Store | None, prefix: str, rank: int, size: int, host: str) -> Group:
    if size == 1:
        return Alone()
    if store is None:
        raise RuntimeError("A plan of several ranks needs a rendezvous.")
    links = GlooLinks(PrefixStore(prefix, store), rank, size, host, COLLECTIVE_TIMEOUT)
    return LinkedGroup(links)
