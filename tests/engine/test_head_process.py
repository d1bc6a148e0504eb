"""A head process says why it ends, and its exit code tells failure from a wish."""

import asyncio
import json
import signal
import socket
import subprocess
import sys

import msgspec
import pytest

from engine.protocol.launch import GIVEN_UP, Address, encode_spec
from tests.engine.head_process import ROOT, HeadProcess, head_process, process_spec, start
from tests.engine.head_world import ASK, MODEL, PATIENCE, read_events


async def test_a_head_outlives_a_killed_rank_and_says_which_it_was() -> None:
    async with head_process() as world:
        await world.until_ready()
        world.ranks[1].kill()
        async with asyncio.timeout(PATIENCE):
            while (body := await world.health())["status"] == "ready":
                await asyncio.sleep(0.01)
    assert body["status"] == "recovering"
    why = "Rank 1 has gone: its connection closed while it was idle."
    assert body["detail"].startswith(f"{why} 0 answers wait. Waiting for ranks 0, 1")


@pytest.mark.parametrize("how", ["sigterm", "stdin"])
async def test_a_head_that_is_told_to_stop_ends_open_streams_and_leaves_in_time(how: str) -> None:
    async with head_process() as world:
        await world.until_ready()
        body = {"model": MODEL, "stream": True} | ASK | {"max_tokens": 8000}
        async with world.http.post("/v1/chat/completions", json=body) as answer:
            events = read_events(answer)
            await anext(events)
            _tell_to_stop(world, how)
            rest = [event async for event in events]
        log = await world.last_words()
        async with asyncio.timeout(PATIENCE):
            assert [await rank.wait() for rank in world.ranks] == [0, 0]
    assert rest[-1] == "[DONE]"
    assert json.loads(rest[-2])["error"]["message"] == "The engine is being stopped."
    assert world.head.returncode == 0
    assert log[-1].startswith("Stopping: ")


def _tell_to_stop(world: HeadProcess, how: str) -> None:
    if how == "sigterm":
        world.head.send_signal(signal.SIGTERM)
    else:
        assert world.head.stdin is not None
        world.head.stdin.close()


async def refusal(address: Address | None = None, **change: object) -> str:
    """The only line of a head that cannot start."""
    spec = process_spec()
    if address is not None:
        spec = msgspec.structs.replace(spec, http=address)
    head = await start("engine.head", msgspec.structs.replace(spec, **change))
    async with asyncio.timeout(PATIENCE):
        output, _ = await head.communicate()
    assert head.returncode == (1 if address else GIVEN_UP), "an address may be free again soon"
    lines = output.decode().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


async def test_a_head_that_cannot_start_says_so_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address("127.0.0.1", taken.getsockname()[1])
        assert await refusal(address) == f"Cannot listen on {address}: Address already in use."
    assert "not a GGUF file" in await refusal(model_path="/etc/passwd")
    assert "is not a head's" in await refusal(role="rank", rank=0)


ENDING = """
import os, signal, sys
import engine.head.__main__ as head

async def fail(spec, again):
    return 1

head.run_head = fail
code = head.main()
os.kill(os.getpid(), signal.SIGTERM)
sys.exit(code)
"""


def test_a_failed_head_that_is_told_to_stop_while_it_ends_still_says_that_it_failed() -> None:
    head = subprocess.Popen([sys.executable, "-c", ENDING], stdin=subprocess.PIPE, cwd=ROOT)
    assert head.stdin is not None
    head.stdin.write(encode_spec(process_spec()) + b"\n")
    head.stdin.flush()
    assert head.wait(PATIENCE) == 1
    head.stdin.close()
