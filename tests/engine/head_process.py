"""A head as a process of its own, with fake ranks beside it."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import aiohttp
import msgspec

from engine.protocol.launch import Address, ProcessSpec, encode_spec
from tests.engine.head_world import PATIENCE, TOKEN, Json, make_spec

ROOT = Path(__file__).resolve().parents[2]


def free_address() -> Address:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return Address("127.0.0.1", taken.getsockname()[1])


def process_spec() -> ProcessSpec:
    return msgspec.structs.replace(make_spec(), http=free_address(), control=free_address())


async def start(module: str, spec: ProcessSpec) -> asyncio.subprocess.Process:
    """`python -m module`, given `spec`; its standard input stays open."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=ROOT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdin is not None
    process.stdin.write(encode_spec(spec) + b"\n")
    return process


class HeadProcess:
    def __init__(self, spec: ProcessSpec, processes: Sequence[asyncio.subprocess.Process]) -> None:
        self.spec = spec
        self.head, *self.ranks = processes
        self.http = aiohttp.ClientSession(
            f"http://{spec.http}", headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False
        )

    async def health(self) -> Json:
        async with self.http.get("/health") as answer:
            body: Json = await answer.json()
            return body

    async def until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(aiohttp.ClientConnectionError):
                if (await self.health())["status"] == "ready":
                    return
            assert time.monotonic() < deadline, "the head is not ready"
            assert self.head.returncode is None, await self.last_words()
            await asyncio.sleep(0.05)

    async def last_words(self) -> list[str]:
        """Waits for the end and returns the head's log."""
        async with asyncio.timeout(PATIENCE):
            assert self.head.stdout is not None
            log = await self.head.stdout.read()
            await self.head.wait()
        return log.decode().splitlines()


@contextlib.asynccontextmanager
async def head_process(spec: ProcessSpec | None = None) -> AsyncIterator[HeadProcess]:
    spec = spec or process_spec()
    processes = [await start("engine.head", spec)]
    world = None
    try:
        world = HeadProcess(spec, processes)
        ranks = range(spec.config.plan.world_size)
        await wait_for_port(spec.control, processes[0])
        for rank in ranks:
            rank_spec = msgspec.structs.replace(spec, role="rank", rank=rank)
            processes.append(await start("tests.engine.fake_rank", rank_spec))
        world.ranks = processes[1:]
        yield world
    finally:
        if world is not None:
            await world.http.close()
        for process in processes:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
            await process.communicate()


async def wait_for_port(address: Address, process: asyncio.subprocess.Process) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            _, writer = await asyncio.open_connection(address.host, address.port)
        except ConnectionRefusedError:
            assert process.returncode is None, "the head ended before it listened"
            assert time.monotonic() < deadline, f"nothing listens on {address}"
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
