"""Conversations that many people have with one engine at the same time.

Each is fixed by the seed and its number: a system prompt that many share, turns that repeat all
that was said before, lengths from a log-normal distribution. People arrive as a Poisson process,
read and think for an exponential time, and when one leaves the next one comes.
"""

import asyncio
import time
from dataclasses import dataclass, field
from itertools import count, pairwise
from random import Random
from statistics import quantiles

from engine.bench.compare.players.asks import Serve, Served
from engine.bench.compare.players.prompts import Prompts
from engine.bench.compare.players.window import Stream

SYSTEMS, SYSTEM_TOKENS = 4, 128
THINKING = 4.0
"""Seconds between an answer and the next question, on average."""
TURNS = 6
"""At most."""
LONGEST = 1600
"""Tokens of a conversation, after which it ends."""


@dataclass(frozen=True)
class Turn:
    asked: list[int]
    answer: int
    think: float


@dataclass
class Book:
    """What was seen, by the clock."""

    asked: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    """Seconds to the first token."""
    answers: list[list[float]] = field(default_factory=list)
    """When each token of each answer came."""
    waiting: dict[int, float] = field(default_factory=dict)
    """Turns without a token, since when."""


def conversation(number: int, seed: int, prompts: Prompts) -> list[Turn]:
    """What will be said in it, whoever answers. The first turn begins with its system prompt."""
    random = Random(f"{seed}/{number}")
    system = prompts.make(SYSTEM_TOKENS, "system", seed, random.randrange(SYSTEMS))
    turns, length = [], SYSTEM_TOKENS
    for index in range(random.randint(2, TURNS)):
        asked = _length(random, 40, 0.7, 8, 256)
        answer = _length(random, 32, 0.6, 8, 128)
        length += asked + answer
        if length > LONGEST:
            break
        own = prompts.make(asked, "turn", seed, number, index)
        turns.append(Turn((system if not index else []) + own, answer, _thinking(random)))
    return turns


def _length(random: Random, middle: float, spread: float, least: int, most: int) -> int:
    return max(least, min(most, round(middle * random.lognormvariate(0, spread))))


def _thinking(random: Random) -> float:
    return random.expovariate(1 / THINKING)


async def serve(stream: Stream, prompts: Prompts, ask: Serve) -> Served:
    """Raises what a conversation raises."""
    book = Book()
    began = time.perf_counter()
    numbers = count()
    random = Random(ask.seed)
    gaps = [random.expovariate(1) for _ in range(ask.open)]
    pace = ask.ramp / sum(gaps)
    people = [
        asyncio.create_task(_person(stream, prompts, ask, book, numbers, pace * sum(gaps[:index])))
        for index in range(1, ask.open + 1)
    ]
    done, _open = await asyncio.wait(
        people, timeout=ask.ramp + ask.seconds, return_when=asyncio.FIRST_EXCEPTION
    )
    end = time.perf_counter()
    for task in people:
        task.cancel()
    await asyncio.gather(*people, return_exceptions=True)
    for task in done:
        task.result()
    return told(book, began + ask.ramp, end)


async def _person(
    stream: Stream, prompts: Prompts, ask: Serve, book: Book, numbers: "count[int]", after: float
) -> None:
    """One conversation after another, for ever."""
    await asyncio.sleep(after)
    while True:
        said: list[int] = []
        for turn in conversation(next(numbers), ask.seed, prompts):
            said += turn.asked
            said += await _answer(stream, said, turn.answer, book)
            await asyncio.sleep(turn.think)


async def _answer(stream: Stream, said: list[int], tokens: int, book: Book) -> list[int]:
    answer: list[int] = []
    times: list[float] = []
    key, began = len(book.asked), time.perf_counter()
    book.asked.append(began)
    book.waiting[key] = began
    book.answers.append(times)
    async for new in stream(said, tokens):
        now = time.perf_counter()
        if not answer:
            book.firsts.append(now - book.waiting.pop(key))
        answer += new
        times += [now] * len(new)
    return answer


def told(book: Book, begin: float, end: float) -> Served:
    """Tokens and the gaps between them in the time that counts; every turn's first token."""
    tokens = sum(begin <= at <= end for times in book.answers for at in times)
    gaps = [b - a for times in book.answers for a, b in pairwise(times) if begin <= b <= end]
    firsts = book.firsts + [end - since for since in book.waiting.values()]
    return Served(
        tokens_per_second=tokens / (end - begin),
        tokens=tokens,
        turns=len(book.asked),
        unanswered=len(book.waiting),
        ttft_p50=_part(firsts, 50),
        ttft_p95=_part(firsts, 95),
        itl_p50=_part(gaps, 50),
        itl_p95=_part(gaps, 95),
    )


def _part(values: list[float], percent: int) -> float | None:
    if len(values) < 2:
        return values[0] if values else None
    return quantiles(values, n=100, method="inclusive")[percent - 1]
