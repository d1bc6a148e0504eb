"""A member of a shared-memory group in a process of its own, to be killed, stopped or starved.

Each line on its standard input is a number of floats to sum over the group; it answers each with
the digest of what it got, or with the reason why it got nothing.
"""

import hashlib
import subprocess
import sys
from datetime import timedelta

import torch
from torch import Tensor
from torch._C._distributed_c10d import Store

from engine.errors import RankError
from engine.parallel import join_store
from engine.parallel.sharing import share_memory
from engine.parallel.shm import ShmGroup

SECONDS = 60.0


def join(store: Store, rank: int, size: int, patience: float) -> ShmGroup:
    return ShmGroup(share_memory(store, rank, size, "token", patience))


def start(rank: int, size: int, port: int, patience: float) -> "subprocess.Popen[str]":
    arguments = [str(it) for it in (rank, size, port, patience)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.engine.group_process", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def tell(process: "subprocess.Popen[str]", count: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{count}\n")


def answer(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def numbers(rank: int, count: int) -> Tensor:
    """Different on every rank, and the same whenever asked for."""
    return torch.randn(count, generator=torch.Generator().manual_seed(rank * 1_000_003 + count))


def digest(x: Tensor) -> str:
    return hashlib.sha256(x.numpy().tobytes()).hexdigest()


def main() -> None:
    rank, size, port = map(int, sys.argv[1:4])
    torch.set_num_threads(1)
    store = join_store("127.0.0.1", port, timedelta(seconds=SECONDS))
    group = join(store, rank, size, float(sys.argv[4]))
    for line in sys.stdin:
        try:
            print(digest(group.all_reduce(numbers(rank, int(line)))), flush=True)
        except RankError as error:
            print(error, flush=True)


if __name__ == "__main__":
    main()
