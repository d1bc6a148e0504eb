"""What is measured, and with which questions."""

from collections.abc import Callable
from typing import Literal

import msgspec

from engine.bench.compare.players import asks
from engine.bench.compare.spread import Better
from engine.errors import ConfigError

Kind = Literal["ask", "noisy", "fresh"]
"""`ask`: one question. `noisy`: the question twice, alone and beside a neighbour that keeps one
core busy. `fresh`: a new process, from its start to its first token, and what it holds then."""


class Figure(msgspec.Struct, frozen=True):
    """One number that a work gives."""

    name: str
    title: str
    unit: str
    better: Better


class Work(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    needs: str
    """What a contestant has to be able to do."""
    kind: Kind
    figures: list[Figure]
    asks: Callable[[int], asks.Ask]
    """For a round; seeds differ, so that no cache knows the prompt."""
    seconds: float = 300.0
    """For one answer, at most."""
    every: int = 1
    """In one of so many rounds."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    batches: tuple[int, ...] = (1, 4, 8, 32)
    context: int = 256
    tokens: int = 64
    prompts: tuple[int, ...] = (256, 1024, 4096)
    prefix: int = 1024
    own: int = 16
    noisy_batch: int = 8
    noisy_tokens: int = 32
    open: int = 200
    ramp: float = 15.0
    serve_seconds: float = 60.0
    fresh_kv_tokens: int = 16384
    rare: int = 3
    """Long works are done in one of so many rounds."""

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return max(*self.prompts, self.prefix + self.own, self.context + self.tokens, 1792) + 64

    @property
    def kv_tokens(self) -> int:
        return 65536 if self.open > 32 else 8192


FULL = Sizes()
QUICK = Sizes(
    batches=(1, 4),
    context=32,
    tokens=8,
    prompts=(64,),
    prefix=64,
    noisy_batch=4,
    noisy_tokens=8,
    open=6,
    ramp=0.5,
    serve_seconds=2.0,
    fresh_kv_tokens=2048,
    rare=1,
)
NAMES = ("decode", "noisy", "prefill", "first", "serve", "fresh")
RATE = "tokens/s"


def works(sizes: Sizes, names: list[str]) -> list[Work]:
    """Those of `names`, all where there is none; raises ConfigError for an unknown one."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ConfigError(f"There is no work {unknown[0]!r}; there are {', '.join(NAMES)}.")
    made = {
        "decode": [_decode(sizes, batch) for batch in sizes.batches],
        "noisy": [_noisy(sizes)],
        "prefill": [_prefill(tokens) for tokens in sizes.prompts],
        "first": [_first(sizes, shared=False), _first(sizes, shared=True)],
        "serve": [_serve(sizes)],
        "fresh": [_fresh(sizes)],
    }
    return [work for name in NAMES if not names or name in names for work in made[name]]


def _decode(sizes: Sizes, batch: int) -> Work:
    ask = asks.Decode(batch=batch, context=sizes.context, tokens=sizes.tokens)
    name = f"decode-{batch}"
    return Work(
        name=name,
        needs=asks.DECODE,
        kind="ask",
        figures=[Figure(name, f"Decode, batch {batch}", RATE, "more")],
        asks=lambda _round: ask,
        seconds=600.0,
    )


def _noisy(sizes: Sizes) -> Work:
    batch = sizes.noisy_batch
    ask = asks.Decode(
        batch=batch,
        context=sizes.context,
        tokens=sizes.noisy_tokens,
        # Some become so slow that they would never end.
        most_seconds=15.0,
    )
    return Work(
        name="noisy",
        needs=asks.DECODE,
        kind="noisy",
        figures=[
            Figure("noisy", f"Decode, batch {batch}, beside a busy core", RATE, "more"),
            Figure("noisy-times", "Times slower beside a busy core", "×", "less"),
        ],
        asks=lambda _round: ask,
        seconds=600.0,
    )


def _prefill(tokens: int) -> Work:
    name = f"prefill-{tokens}"
    return Work(
        name=name,
        needs=asks.PREFILL,
        kind="ask",
        figures=[Figure(name, f"Prefill, {tokens:,} tokens", RATE, "more")],
        asks=lambda number: asks.Prefill(tokens=tokens, seed=100 * tokens + number),
        seconds=600.0,
    )


def _first(sizes: Sizes, *, shared: bool) -> Work:
    name = "first-shared" if shared else "first-cold"
    how = "shared" if shared else "cold"
    title = f"Time to first token, {how} {sizes.prefix:,}-token prefix"
    return Work(
        name=name,
        needs=asks.FIRST_TOKEN,
        kind="ask",
        figures=[Figure(name, title, "s", "less")],
        asks=lambda number: asks.FirstToken(
            prefix=sizes.prefix, own=sizes.own, shared=shared, seed=2 * number + shared
        ),
        seconds=600.0,
    )


def _serve(sizes: Sizes) -> Work:
    people = f"{sizes.open} open conversations"
    return Work(
        name="serve",
        needs=asks.SERVE,
        kind="ask",
        figures=[
            Figure("serve", f"Serving, {people}", RATE, "more"),
            Figure("serve-ttft-p50", "Serving, median time to first token", "s", "less"),
            Figure("serve-ttft-p95", "Serving, p95 time to first token", "s", "less"),
            Figure("serve-itl-p50", "Serving, median time between tokens", "s", "less"),
            Figure("serve-itl-p95", "Serving, p95 time between tokens", "s", "less"),
        ],
        asks=lambda number: asks.Serve(
            open=sizes.open, ramp=sizes.ramp, seconds=sizes.serve_seconds, seed=7 + number
        ),
        seconds=sizes.ramp + sizes.serve_seconds + 120.0,
        every=sizes.rare,
    )


def _fresh(sizes: Sizes) -> Work:
    """Memory with the same work done by everybody: a batch of eight after the first token."""
    ask = asks.Decode(batch=8, context=sizes.context, tokens=8)
    return Work(
        name="fresh",
        needs=asks.DECODE,
        kind="fresh",
        figures=[
            Figure("load", "From its start to its first token", "s", "less"),
            Figure("memory", "Peak memory, with a batch of 8", "MB", "less"),
        ],
        asks=lambda _round: ask,
        seconds=900.0,
        every=sizes.rare,
    )
