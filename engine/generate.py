"""Run one prompt through the real engine on this machine: its ranks, and a head without HTTP.

`python -m engine.generate --prompt TEXT` prints the answer, and nothing else, on standard output.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from engine.bundled import bundled_model
from engine.checkpoint import open_checkpoint
from engine.config import DEVICES, DTYPES, INT4_GROUPS, KV_DTYPES, EngineConfig, ParallelPlan
from engine.errors import EngineError, RankError, Said
from engine.head.answer import Notice
from engine.head.engine import HeadEngine, Wanted
from engine.protocol.launch import Address, ProcessSpec, encode_spec

LOOPBACK = "127.0.0.1"
STOP_SECONDS = 5.0
GRACE_SECONDS = 1.0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m engine.generate", description=__doc__)
    parser.add_argument("--model", default="bundled", help="GGUF file, folder, or `bundled`")
    parser.add_argument("--prompt", required=True)
    parser.add_argument("--max-tokens", type=_positive, default=128)
    parser.add_argument("--greedy", action="store_true", help="the same as --temperature 0")
    parser.add_argument("--temperature", type=_temperature, default=1.0)
    parser.add_argument("--top-p", type=_share, default=1.0)
    parser.add_argument("--top-k", type=int, default=0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--plan", default="tp=1,pp=1", help="e.g. tp=2,pp=1")
    parser.add_argument("--dtype", choices=DTYPES, default="fp32", help="of the weights")
    parser.add_argument("--kv-dtype", choices=KV_DTYPES, default="fp32", help="of the KV cache")
    parser.add_argument("--int4-group", choices=INT4_GROUPS, type=int, default=32)
    parser.add_argument("--threads", type=_positive, default=1, help="threads of each rank")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="of the ranks")
    parser.add_argument("--raw", action="store_true", help="no chat template: continue the text")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _temperature(text: str) -> float:
    if not 0 <= (value := float(text)) <= 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 2")
    return value


def _share(text: str) -> float:
    if not 0 < (value := float(text)) <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0 and at most 1")
    return value


def make_spec(options: argparse.Namespace) -> ProcessSpec:
    """Raises ConfigError or CheckpointError for what cannot work."""
    config = EngineConfig(
        plan=ParallelPlan.parse(options.plan),
        dtype=options.dtype,
        kv_dtype=options.kv_dtype,
        int4_group=options.int4_group,
        threads_per_rank=options.threads,
        device=options.device,
    )
    path = bundled_model() if options.model == "bundled" else Path(options.model)
    return ProcessSpec(
        launch=secrets.token_hex(8),
        token=secrets.token_hex(32),
        role="head",
        model_path=str(path.absolute()),
        served_name=path.stem,
        config=config,
        host=LOOPBACK,
        http=Address(LOOPBACK, 0),
        control=Address(LOOPBACK, 0),
    )


@contextlib.asynccontextmanager
async def started_ranks(spec: ProcessSpec) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """The ranks of `spec` as processes of their own; gone when the block ends."""
    root = str(Path(__file__).resolve().parents[1])
    processes: list[asyncio.subprocess.Process] = []
    try:
        for rank in range(spec.config.plan.world_size):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "engine.rank",
                stdin=asyncio.subprocess.PIPE,
                stdout=sys.stderr,
                cwd=root,
                env=os.environ | {"OMP_NUM_THREADS": str(spec.config.threads_per_rank)},
                # A Ctrl-C in the terminal is ours to handle; theirs is to follow us.
                start_new_session=True,
            )
            processes.append(process)
            if process.stdin is None:
                raise RankError(f"Rank {rank} was started without a standard input.")
            rank_spec = msgspec.structs.replace(spec, role="rank", rank=rank)
            process.stdin.write(encode_spec(rank_spec) + b"\n")
            await process.stdin.drain()
        yield processes
    finally:
        await asyncio.gather(*map(_end, processes))


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


async def generate(options: argparse.Namespace) -> None:
    """Print the answer as it comes; raises EngineError when there is none."""
    spec = make_spec(options)
    engine = HeadEngine(spec, open_checkpoint(spec.model_path))
    prompt = (
        engine.tokenizer.bos_ids + engine.tokenizer.encode_trusted(options.prompt)
        if options.raw
        else engine.chat.encode([{"role": "user", "content": options.prompt}])
    )
    spec = msgspec.structs.replace(spec, control=await engine.listen())
    wanted = Wanted(
        temperature=0.0 if options.greedy else options.temperature,
        top_p=options.top_p,
        top_k=options.top_k,
        seed=options.seed,
        max_tokens=options.max_tokens,
    )
    async with started_ranks(spec) as ranks:
        answer = asyncio.create_task(_print_answer(engine, prompt, wanted))
        work = [answer, asyncio.create_task(engine.run()), asyncio.create_task(_watch(ranks))]
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            await (answer if answer in done else done.pop())
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            engine.finish(Said("Done."))
            await engine.close()


async def _watch(ranks: list[asyncio.subprocess.Process]) -> None:
    """Until a rank ends by itself; raises RankError. The engine knows better why, if it does."""
    ends = [asyncio.create_task(process.wait()) for process in ranks]
    try:
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(GRACE_SECONDS)
        end = done.pop()
        raise RankError(f"Rank {ends.index(end)} ended with exit code {end.result()}.")
    finally:
        for end in ends:
            end.cancel()


async def _print_answer(engine: HeadEngine, prompt: list[int], wanted: Wanted) -> None:
    await engine.ready.wait()
    async for delta in engine.submit([prompt], wanted):
        if isinstance(delta, Notice):
            continue
        if delta.finish == "error":
            raise RankError(delta.error)
        print(delta.text, end="", flush=True)
    print(flush=True)


async def _run(options: argparse.Namespace) -> int:
    work = asyncio.create_task(generate(options))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        print("Stopped.", file=sys.stderr)
        return 130
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def main() -> int:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    return asyncio.run(_run(parse(sys.argv[1:])))


if __name__ == "__main__":
    sys.exit(main())
