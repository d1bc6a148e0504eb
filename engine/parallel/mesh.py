"""From a plan to the groups a rank belongs to."""

import logging
import socket
from dataclasses import dataclass, field
from datetime import timedelta

import torch
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from engine.config import EngineConfig, Transport
from engine.device import CPU
from engine.parallel.activity import ActivityLog
from engine.parallel.group import Alone, Group, LinkedGroup
from engine.parallel.links import GlooLinks, Links
from engine.parallel.nccl import NcclGroup, StagedGroup, open_nccl
from engine.parallel.sharing import Refusal, share_memory
from engine.parallel.shm import ShmGroup
from engine.parallel.tcp import TcpLinks

log = logging.getLogger(__name__)

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

    def close(self) -> None:
        self.tp.close()
        self.pipeline.close()


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


def build_mesh(
    config: EngineConfig,
    rank: int,
    host: str,
    token: str,
    store: Store,
    device: torch.device = CPU,
) -> Mesh:
    """Connect to the peers through `store`; raises when one does not appear in time.

    `device` is where this rank computes, and where what it exchanges is.
    """
    plan = config.plan
    stage, stage_rank = plan.stage(rank), plan.stage_rank(rank)
    builder = _Builder(config.transport, host, token, device)
    tp = builder.group(PrefixStore(f"tp{stage}", store), stage_rank, plan.width)
    pipeline = builder.group(PrefixStore(f"pp{stage_rank}", store), stage, plan.pp)
    return Mesh(tp, pipeline, "+".join(builder.carriers) or "none", builder.activity)


class _Builder:
    """Groups of one rank, and what carries them."""

    def __init__(self, transport: Transport, host: str, token: str, device: torch.device) -> None:
        self._device = device
        self._transport = transport
        self._host = host
        self._token = token
        self.activity = ActivityLog()
        self.carriers: dict[str, None] = {}

    def group(self, store: Store, member: int, size: int) -> Group:
        if size == 1:
            return Alone()
        if self._device.type == "cpu":
            return self._by_host(store, member, size)
        if self._transport in ("auto", "nccl"):
            self.carriers["nccl"] = None
            group = open_nccl(store, member, size, COLLECTIVE_SECONDS)
            return NcclGroup(group, member, size, self._device, self.activity)
        return StagedGroup(self._by_host(store, member, size), self._device)

    def _by_host(self, store: Store, member: int, size: int) -> Group:
        shared = self._shared(PrefixStore("shm", store), member, size)
        if shared is not None:
            self.carriers["shm"] = None
            return shared
        links = self._links(store, member, size)
        self.carriers[links.name] = None
        return LinkedGroup(links, self.activity)

    def _shared(self, store: Store, member: int, size: int) -> Group | None:
        """None where links are to be used; raises Refusal where nothing else was allowed."""
        if self._transport not in ("auto", "shm"):
            return None
        try:
            memory = share_memory(store, member, size, self._token, COLLECTIVE_SECONDS)
        except Refusal as refusal:
            if self._transport == "shm":
                raise
            log.info("%s", refusal)
            return None
        return ShmGroup(memory, self.activity)

    def _links(self, store: Store, member: int, size: int) -> Links:
        if self._transport == "gloo":
            timeout = timedelta(seconds=COLLECTIVE_SECONDS)
            return GlooLinks(store, member, size, self._host, timeout)
        return TcpLinks(store, member, size, self._host, self._token, COLLECTIVE_SECONDS)
