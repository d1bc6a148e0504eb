"""How long the first requests of a fresh engine wait for their first token.

Starts the whole engine (ranks as processes, the head with its HTTP in this one) and asks it as a
client would, one request after another, each with words of its own so that no answer is cached.
"""

import asyncio
import http.client
import json
import secrets
import time
from pathlib import Path
from statistics import median

import msgspec

from engine.bundled import bundled_model
from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig, ParallelPlan
from engine.errors import Said
from engine.generate import LOOPBACK, started_ranks
from engine.head.api.app import build_app
from engine.head.engine import HeadEngine
from engine.head.front import HttpFront
from engine.protocol.launch import Address, ProcessSpec

REQUESTS = 10
ANSWER = 8
PATIENCE = 120.0
"""Seconds for the engine to be ready, and for one answer."""
_WORDS = ["rain", "stone", "lamp", "river", "glass", "cloud", "bread", "horse", "paper", "salt"]


class WarmUp(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds from a request to its first token, in the order of asking."""

    model: str
    plan: str
    ready_seconds: float
    ttft: list[float]
    first: float
    tenth: float
    ratio: float
    """The first over the median of the others."""


def measure(model: Path | None = None, plan: ParallelPlan | None = None) -> WarmUp:
    """Raises EngineError when the engine cannot start."""
    return asyncio.run(_measure(_spec(model or bundled_model(), plan or ParallelPlan())))


def _spec(model: Path, plan: ParallelPlan) -> ProcessSpec:
    return ProcessSpec(
        launch=secrets.token_hex(8),
        token=secrets.token_hex(32),
        role="head",
        model_path=str(model.absolute()),
        served_name=model.stem,
        config=EngineConfig(plan=plan),
        host=LOOPBACK,
        http=Address(LOOPBACK, 0),
        control=Address(LOOPBACK, 0),
    )


async def _measure(spec: ProcessSpec) -> WarmUp:
    began = time.monotonic()
    engine = HeadEngine(spec, open_checkpoint(spec.model_path))
    spec = msgspec.structs.replace(spec, control=await engine.listen())
    front = HttpFront(build_app(engine), spec.http)
    front.start()
    async with started_ranks(spec):
        life = asyncio.create_task(engine.run())
        try:
            await asyncio.wait_for(_ready(engine, life), PATIENCE)
            ready = time.monotonic() - began
            seconds = await asyncio.to_thread(_ask_all, front.address, spec)
        finally:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
            engine.finish(Said("Done."))
            await front.stop()
            await engine.close()
    return _report(spec, ready, seconds)


async def _ready(engine: HeadEngine, life: "asyncio.Task[None]") -> None:
    """Until requests are taken; raises what ended the engine if it ended."""
    ready = asyncio.create_task(engine.ready.wait())
    await asyncio.wait([ready, life], return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if life.done():
        life.result()


def _report(spec: ProcessSpec, ready: float, seconds: list[float]) -> WarmUp:
    ttft = [round(1e3 * value, 2) for value in seconds]
    return WarmUp(
        model=spec.served_name,
        plan=str(spec.config.plan),
        ready_seconds=round(ready, 2),
        ttft=ttft,
        first=ttft[0],
        tenth=ttft[-1],
        ratio=round(ttft[0] / median(ttft[1:]), 3),
    )


def _ask_all(address: Address, spec: ProcessSpec) -> list[float]:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=PATIENCE)
    try:
        # The client's own first use of the network is no part of what is measured.
        connection.request("GET", "/health")
        connection.getresponse().read()
        return [_ask(connection, spec, _WORDS[index]) for index in range(REQUESTS)]
    finally:
        connection.close()


def _ask(connection: http.client.HTTPConnection, spec: ProcessSpec, word: str) -> float:
    """Seconds to the first token; reads the answer to its end."""
    body = {
        "model": spec.served_name,
        "messages": [{"role": "user", "content": f"{word} " * 20 + "Tell me a story."}],
        "max_tokens": ANSWER,
        "temperature": 0,
        "stream": True,
    }
    headers = {"Authorization": f"Bearer {spec.token}", "Content-Type": "application/json"}
    began = time.monotonic()
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    answer = connection.getresponse()
    first: float | None = None
    for line in answer:
        if first is None and _says_something(line):
            first = time.monotonic() - began
    if first is None:
        raise ValueError(f"An answer without a token, status {answer.status}.")
    return first


def _says_something(line: bytes) -> bool:
    if not line.startswith(b"data: {"):
        return False
    choices = json.loads(line.removeprefix(b"data: "))["choices"]
    return any(choice["delta"].get("content") for choice in choices)
