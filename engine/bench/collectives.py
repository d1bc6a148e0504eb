"""What an all-reduce between two processes of this machine takes, by what carries it.

The carriers take turns in rounds, so that a busy moment of the machine falls on all of them.
"""

import secrets
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from statistics import median, quantiles

import msgspec
import torch
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, Store

from engine.config import EngineConfig, ParallelPlan, Transport
from engine.parallel import Group, build_mesh, join_store, open_store

CARRIERS: tuple[Transport, ...] = ("shm", "tcp", "gloo")
SIZES = (2304, 65536)
"""Bytes: one token of the bundled model, and what the target is set for."""

ROUNDS = 10
CALLS = {"shm": 200, "tcp": 100, "gloo": 20}
"""A round, by how long they take."""

LOOPBACK = "127.0.0.1"
PATIENCE = 60.0


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Microseconds of one all-reduce."""

    bytes: int
    carrier: str
    calls: int
    p50: float
    p95: float
    times_shm: float
    """Its p50 over that of shared memory."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    torch: str
    latencies: list[Latency]


def measure() -> Report:
    """Raises RankError where memory cannot be shared."""
    timeout = timedelta(seconds=PATIENCE)
    store = open_store(LOOPBACK, timeout)
    token = secrets.token_hex(16)
    peer = subprocess.Popen(
        [sys.executable, "-m", "engine.bench.collectives", str(store.port)],
        stdin=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
        text=True,
    )
    try:
        if peer.stdin is None:
            raise ValueError("The peer was started without a standard input.")
        peer.stdin.write(f"{token}\n")
        peer.stdin.flush()
        seconds = _run(0, token, store)
        peer.wait(PATIENCE)
    finally:
        peer.kill()
        peer.communicate()
    return Report(torch=str(torch.__version__), latencies=_latencies(seconds))


def _latencies(seconds: dict[tuple[int, Transport], list[float]]) -> list[Latency]:
    return [
        Latency(
            bytes=size,
            carrier=carrier,
            calls=len(values),
            p50=round(1e6 * median(values), 1),
            p95=round(1e6 * quantiles(values, n=20)[-1], 1),
            times_shm=round(median(values) / median(seconds[size, "shm"]), 1),
        )
        for (size, carrier), values in seconds.items()
    ]


def _run(rank: int, token: str, store: Store) -> dict[tuple[int, Transport], list[float]]:
    """Seconds of every call, by bytes and carrier; both processes call this."""
    torch.set_num_threads(1)
    groups = {carrier: _group(carrier, rank, token, store) for carrier in CARRIERS}
    kinds = [(size, carrier) for size in SIZES for carrier in CARRIERS]
    seconds: dict[tuple[int, Transport], list[float]] = {kind: [] for kind in kinds}
    for size, carrier in kinds:
        _calls(groups[carrier], torch.ones(size // 4), 20)
    for _ in range(ROUNDS):
        for size, carrier in kinds:
            calls = _calls(groups[carrier], torch.ones(size // 4), CALLS[carrier])
            seconds[size, carrier] += calls
    return seconds


def _group(carrier: Transport, rank: int, token: str, store: Store) -> Group:
    config = EngineConfig(plan=ParallelPlan(tp=2), transport=carrier)
    return build_mesh(config, rank, LOOPBACK, token, PrefixStore(carrier, store)).tp


def _calls(group: Group, x: Tensor, count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        group.all_reduce(x)
        seconds.append(time.perf_counter() - began)
    return seconds


if __name__ == "__main__":
    given = sys.stdin.readline().strip()
    _run(1, given, join_store(LOOPBACK, int(sys.argv[1]), timedelta(seconds=PATIENCE)))
