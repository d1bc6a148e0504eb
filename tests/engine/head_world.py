"""A head with its real HTTP and fake ranks, all in the test's event loop."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import msgspec

from engine.checkpoint import Checkpoint
from engine.config import EngineConfig, ParallelPlan
from engine.errors import EngineError, Said
from engine.head.api.app import build_app
from engine.head.deadlines import Deadlines
from engine.head.engine import HeadEngine
from engine.head.front import HttpFront
from engine.protocol.launch import Address, ProcessSpec
from engine.protocol.stats import EngineStats
from engine.text.detokenizer import Detokenizer
from tests.engine.bundled import bundled_checkpoint
from tests.engine.fake_rank import SCRIPT, FakeRank, Speaker

TOKEN = "launch-token"
MODEL = "small"
PATIENCE = 20.0
Json = dict[str, Any]


def make_spec(plan: ParallelPlan | None = None, **settings: Any) -> ProcessSpec:
    loopback = Address("127.0.0.1", 0)
    return ProcessSpec(
        launch="l1",
        token=TOKEN,
        role="head",
        model_path=str(bundled_checkpoint().path),
        served_name=MODEL,
        config=EngineConfig(plan=plan or ParallelPlan(tp=2), **settings),
        host="127.0.0.1",
        http=loopback,
        control=loopback,
    )


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition that other tasks bring about; fails after a deadline."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE:g} s"
        await asyncio.sleep(0.005)


class HeadWorld:
    def __init__(
        self, spec: ProcessSpec, deadlines: Deadlines, script: str, checkpoint: Checkpoint
    ) -> None:
        self.engine = HeadEngine(spec, checkpoint, deadlines)
        self.front = HttpFront(build_app(self.engine), spec.http)
        self.tokenizer = self.engine.tokenizer
        self.speaker = Speaker(self.tokenizer.encode_trusted(script))
        self.spec = spec
        self.ranks: list[FakeRank] = []
        """The one that stands for each rank now."""
        self.started = 0
        self.hold_new = False
        """Whether ranks started from now on take steps but answer none."""
        self.short_lived = False
        """Whether they vanish as soon as they are loaded."""
        self.mending = False
        """Whether ranks that end are started again, as an agent does."""
        self.url = f"http://{self.front.address}"
        self.http = aiohttp.ClientSession(
            self.url, headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False
        )
        self.life: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def add_rank(self, rank: int) -> FakeRank:
        fake = self._make_rank(rank)
        self._tasks.append(asyncio.create_task(self._keep(fake)))
        return fake

    def _make_rank(self, rank: int) -> FakeRank:
        fake = FakeRank(self.spec, rank, self.speaker)
        fake.holding, fake.short_lived = self.hold_new, self.short_lived
        self.ranks[rank : rank + 1] = [fake]
        self.started += 1
        return fake

    async def _keep(self, fake: FakeRank) -> None:
        await fake.run()
        while self.mending:
            fake = self._make_rank(fake.rank)
            await fake.run()

    async def begin(self) -> None:
        control = await self.engine.listen()
        self.spec = msgspec.structs.replace(self.spec, control=control)
        self.front.start()
        self.life = asyncio.create_task(self.engine.run())

    async def begin_ready(self) -> None:
        await self.begin()
        for rank in range(self.spec.config.plan.world_size):
            self.add_rank(rank)
        await until(lambda: self.engine.status == "ready", "being ready")
        for fake in self.ranks:
            fake.received = 0  # the rehearsal's steps are no test's business

    async def fault(self) -> str:
        """Why an epoch ended."""
        await until(lambda: bool(self.engine.recovery.fault), "a fault")
        return str(self.engine.recovery.fault)

    async def end(self) -> None:
        self.mending = False
        await self.http.close()
        if self.life is not None:
            self.life.cancel()
            await asyncio.gather(self.life, return_exceptions=True)
        self.engine.finish(Said("The test is over."))
        await self.engine.close()
        await self.front.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def death(self) -> EngineError:
        """The error the engine ends with."""
        assert self.life is not None
        await asyncio.wait([self.life], timeout=PATIENCE)
        error = self.life.exception()
        assert isinstance(error, EngineError)
        return error

    async def post(self, path: str, **body: Any) -> tuple[int, Json]:
        async with self.http.post(path, json={"model": MODEL} | body) as answer:
            return answer.status, await answer.json()

    async def chat(self, **body: Any) -> tuple[int, Json]:
        return await self.post("/v1/chat/completions", **(ASK | body))

    async def stream(self, path: str = "/v1/chat/completions", **body: Any) -> list[Json]:
        """Every event of a stream, which must end with [DONE]."""
        base = ASK if path.endswith("chat/completions") else {}
        wanted = {"model": MODEL, "stream": True} | base | body
        async with self.http.post(path, json=wanted) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.content_type == "text/event-stream"
            lines = [line async for line in read_events(answer)]
        assert lines.pop() == "[DONE]"
        return [json.loads(line) for line in lines]

    async def rehearse(self, text: str, **body: Any) -> None:
        """Have the ranks answer this chat with exactly this text, then end it."""
        tokens = self.tokenizer.encode_trusted(f"{text}<|im_end|>")
        _, probe = await self.chat(**(body | {"max_tokens": 1, "stream": False}))
        start = probe["usage"]["prompt_tokens"] % len(tokens)
        self.speaker.tokens = tokens[-start:] + tokens[:-start] if start else tokens

    async def stats(self) -> EngineStats:
        async with self.http.get("/stats") as answer:
            return msgspec.json.decode(await answer.read(), type=EngineStats)

    def expected(self, prompt_tokens: int, count: int) -> str:
        """Half a character at the end is never shown."""
        return Detokenizer(self.tokenizer).feed(self.speaker.said(prompt_tokens, count))


ASK: Json = {"messages": [{"role": "user", "content": "Say something"}], "max_tokens": 20}


async def read_events(answer: aiohttp.ClientResponse) -> AsyncIterator[str]:
    async for line in answer.content:
        if line.startswith(b"data: "):
            yield line.removeprefix(b"data: ").decode().strip()


def text_of(events: list[Json]) -> str:
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


@contextlib.asynccontextmanager
async def head_world(
    *,
    plan: ParallelPlan | None = None,
    deadlines: Deadlines | None = None,
    script: str = SCRIPT,
    ready: bool = True,
    checkpoint: Checkpoint | None = None,
    **settings: Any,
) -> AsyncIterator[HeadWorld]:
    world = HeadWorld(
        make_spec(plan, **settings),
        deadlines or Deadlines(),
        script,
        checkpoint or bundled_checkpoint(),
    )
    try:
        await (world.begin_ready() if ready else world.begin())
        yield world
    finally:
        await world.end()
