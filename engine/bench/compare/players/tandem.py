"""Ours: the head's engine in this process, with its scheduler, and its ranks beside it."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from engine import VERSION
from engine.bench.compare.players import asks, window
from engine.bench.compare.players.loop import Loop
from engine.bench.compare.players.mix import serve
from engine.bench.compare.players.prompts import Prompts
from engine.bench.compare.players.speech import Player, Refused, play
from engine.bench.compare.weights import kv_token_bytes, step_bytes
from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig
from engine.errors import EngineError, RankError, RequestError, Said
from engine.generate import LOOPBACK, started_ranks
from engine.head.answer import Delta
from engine.head.collector import collect_rarely
from engine.head.deadlines import Deadlines
from engine.head.engine import HeadEngine, Wanted
from engine.protocol.launch import Address, ProcessSpec

READY_SECONDS = 300.0
NEVER = 1e6
"""Seconds of rest before the engine asks itself for a token: it stays quiet while others play."""
DEFAULTS: dict[str, object] = {"max_batch_size": 64, "token_budget": 512, "max_waiting": 1024}


class Tandem(Player):
    def __init__(self) -> None:
        collect_rarely()
        self._loop = Loop()
        self._life = AsyncExitStack()
        self._primed: set[int] = set()

    def on_open(self, ask: asks.Open) -> asks.Opened:
        try:
            spec = _spec(ask)
            self._loop.run(self._start(spec))
            self._loop.run(window.first_token(self._stream, self._prompts.make(16, "open")))
        except EngineError as error:
            raise Refused(str(error)) from error
        config, model = spec.config, self._checkpoint.config
        rank = self._engine.stats().ranks[0]
        return asks.Opened(
            name=f"Tandem {VERSION} {config.dtype}",
            how=f"{config.dtype} weights, {config.kv_dtype} keys and values, plan {config.plan}, "
            f"{config.threads_per_rank} threads a rank, kernel {rank.kernel}",
            works=[asks.DECODE, asks.PREFILL, asks.FIRST_TOKEN, asks.SERVE],
            step_bytes=step_bytes(model, config.dtype, config.int4_group),
            kv_token_bytes=kv_token_bytes(model, config.kv_dtype),
        )

    def on_decode(self, ask: asks.Decode) -> asks.Timed:
        prompts = [
            self._prompts.make(ask.context, "decode", index, ask.context)
            for index in range(ask.batch)
        ]
        return self._loop.run(self._decode(ask, prompts))

    def on_prefill(self, ask: asks.Prefill) -> asks.Timed:
        prompt = self._prompts.make(ask.tokens, "prefill", ask.seed)
        return asks.Timed(seconds=self._first(prompt), tokens=ask.tokens)

    def on_firsttoken(self, ask: asks.FirstToken) -> asks.Timed:
        prefix = self._prompts.make(ask.prefix, "prefix", ask.seed)
        if ask.shared:
            self._first(prefix + self._prompts.make(ask.own, "other", ask.seed))
        prompt = prefix + self._prompts.make(ask.own, "own", ask.seed)
        return asks.Timed(seconds=self._first(prompt), tokens=len(prompt))

    def on_serve(self, ask: asks.Serve) -> asks.Served:
        return self._loop.run(serve(self._stream, self._prompts, ask))

    def close(self) -> None:
        self._loop.run(self._life.aclose())
        self._loop.close()

    def _first(self, prompt: list[int]) -> float:
        return self._loop.run(window.first_token(self._stream, prompt))

    async def _decode(self, ask: asks.Decode, prompts: list[list[int]]) -> asks.Timed:
        """Every prompt is in the cache first, so that all rows begin together."""
        for prompt in prompts:
            await window.first_token(self._stream, prompt)
        return await window.full_batch(self._stream, prompts, ask.tokens, ask.most_seconds)

    async def _start(self, spec: ProcessSpec) -> None:
        self._checkpoint = open_checkpoint(spec.model_path)
        self._prompts = Prompts(self._checkpoint.token_count)
        engine = HeadEngine(spec, self._checkpoint, Deadlines(resting=NEVER))
        self._engine = engine
        self._life.push_async_callback(engine.close)
        spec = msgspec.structs.replace(spec, control=await engine.listen())
        await self._life.enter_async_context(started_ranks(spec))
        life = asyncio.create_task(engine.run())
        self._life.push_async_callback(_end, engine, life)
        ready = asyncio.create_task(engine.ready.wait())
        either: list[asyncio.Future[Any]] = [ready, life]
        await asyncio.wait(either, timeout=READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if life.done():
            life.result()
        if not engine.ready.is_set():
            raise RankError("The engine was not ready in time.")

    async def _stream(self, prompt: list[int], tokens: int) -> AsyncIterator[list[int]]:
        wanted = Wanted(temperature=0.0, max_tokens=tokens, ignore_eos=True)
        try:
            generation = self._engine.submit([prompt], wanted)
        except RequestError as error:
            raise Refused(str(error)) from error
        try:
            async for news in generation:
                if not isinstance(news, Delta):
                    continue
                if news.finish == "error":
                    raise Refused(news.error)
                if news.drawn is not None:
                    yield [news.drawn]
        finally:
            if not generation.ended:
                self._engine.abort(generation)


async def _end(engine: HeadEngine, life: "asyncio.Task[None]") -> None:
    life.cancel()
    with contextlib.suppress(asyncio.CancelledError, EngineError):
        await life
    engine.finish(Said("Done."))


def _spec(ask: asks.Open) -> ProcessSpec:
    path = Path(ask.gguf)
    return ProcessSpec(
        launch=secrets.token_hex(8),
        token=secrets.token_hex(32),
        role="head",
        model_path=str(path.absolute()),
        served_name=path.stem,
        config=config_of(ask),
        host=LOOPBACK,
        http=Address(LOOPBACK, 0),
        control=Address(LOOPBACK, 0),
    )


def config_of(ask: asks.Open) -> EngineConfig:
    """Raises Refused for a device that this engine has no word for, ConfigError for settings that
    cannot work."""
    found: dict[str, object] = {
        **DEFAULTS,
        "kv_cache_tokens": ask.kv_tokens,
        "threads_per_rank": ask.threads,
        **ask.settings,
    }
    if ask.device != "cpu":
        if "device" not in EngineConfig.__struct_fields__:
            raise Refused(f"This engine runs on processors only, not on {ask.device}.")
        found["device"] = ask.device
    plan = ask.settings.get("plan")
    if plan is not None:
        found["plan"] = _plan(plan)
    try:
        return msgspec.convert(found, EngineConfig, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(f"The engine does not take these settings: {error}.") from error


def _plan(text: str) -> object:
    from engine.config import ParallelPlan

    return msgspec.to_builtins(ParallelPlan.parse(text))


if __name__ == "__main__":
    play(Tandem)
