"""From a plan to the groups a rank belongs to."""

import socket
from dataclasses import dataclass, field
from datetime import timedelta

from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from engine.config import EngineConfig
from engine.parallel.activity import ActivityLog
from engine.parallel.group import Alone, Group, LinkedGroup
from engine.parallel.links import GlooLinks
from engine.parallel.tcp import TcpLinks

COLLECTIVE_SECONDS = 120.0
"""The head notices a hung step long before; this only keeps an orphan from waiting forever."""


@dataclass(frozen=True)
class Mesh:
    """This rank's groups: `tp` shares its layers, `pipeline` is its like in every stage."""

    tp: Group
    pipeline: Group
    transport: str
    activity: ActivityLog = field(default_factory=ActivityLog)
    """Set by the groups around every collective, and by whoever computes in between."""


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


def build_mesh(config: EngineConfig, rank: int, host: str, token: str, store: Store) -> Mesh:
    """Connect to the peers through `store`; raises when one does not appear in time."""
    plan = config.plan
    activity = ActivityLog()
    stage, stage_rank = plan.stage(rank), plan.stage_rank(rank)

    def group(prefix: str, member: int, size: int) -> Group:
        if size == 1:
            return Alone()
        scoped = PrefixStore(prefix, store)
        if config.transport == "gloo":
            timeout = timedelta(seconds=COLLECTIVE_SECONDS)
            return LinkedGroup(GlooLinks(scoped, member, size, host, timeout), activity)
        links = TcpLinks(scoped, member, size, host, token, COLLECTIVE_SECONDS)
        return LinkedGroup(links, activity)

    return Mesh(
        tp=group(f"tp{stage}", stage_rank, plan.width),
        pipeline=group(f"pp{stage_rank}", stage, plan.pp),
        transport=("gloo" if config.transport == "gloo" else "tcp")
        if plan.world_size > 1
        else "none",
        activity=activity,
    )
