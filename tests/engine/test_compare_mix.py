"""The serving mix is the same for everybody, and its numbers are those that readers saw."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from engine.bench.compare.players.asks import Serve
from engine.bench.compare.players.mix import (
    LONGEST,
    SYSTEM_TOKENS,
    Book,
    conversation,
    serve,
    told,
)
from engine.bench.compare.players.prompts import Prompts

PROMPTS = Prompts(49_152)


def test_a_conversation_is_fixed_by_its_seed_and_number() -> None:
    assert conversation(3, 7, PROMPTS) == conversation(3, 7, Prompts(49_152))
    assert conversation(3, 7, PROMPTS) != conversation(4, 7, PROMPTS)
    assert conversation(3, 7, PROMPTS) != conversation(3, 8, PROMPTS)


def test_many_conversations_share_few_beginnings() -> None:
    firsts = [conversation(number, 7, PROMPTS)[0].asked for number in range(60)]
    assert len({tuple(asked[:SYSTEM_TOKENS]) for asked in firsts}) == 4
    assert len({tuple(asked) for asked in firsts}) == 60


def test_no_conversation_is_longer_than_the_longest() -> None:
    for number in range(300):
        turns = conversation(number, 7, PROMPTS)
        assert turns
        assert sum(len(turn.asked) + turn.answer for turn in turns) <= LONGEST


async def test_each_turn_repeats_all_that_was_said() -> None:
    heard: list[list[int]] = []

    async def stream(prompt: list[int], tokens: int) -> AsyncIterator[list[int]]:
        heard.append(prompt)
        await asyncio.sleep(0)
        for token in range(tokens):
            yield [token]

    served = await serve(stream, PROMPTS, Serve(open=6, ramp=0.05, seconds=0.3))
    assert served.turns == len(heard) >= 6
    assert served.unanswered == 0
    assert served.ttft_p95 is not None


async def test_what_a_conversation_raises_is_raised() -> None:
    async def stream(prompt: list[int], tokens: int) -> AsyncIterator[list[int]]:
        yield [1]
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await serve(stream, PROMPTS, Serve(open=2, ramp=0.01, seconds=5.0))


def test_only_tokens_of_the_time_that_counts_are_counted() -> None:
    book = Book(asked=[0.0], firsts=[0.5], answers=[[0.5, 1.5, 2.5, 3.5]])
    served = told(book, begin=1.0, end=3.0)
    assert (served.tokens, served.tokens_per_second, served.itl_p50) == (2, 1.0, 1.0)


def test_a_turn_without_a_token_counts_with_the_time_it_has_waited() -> None:
    book = Book(asked=[0.0, 1.0], firsts=[0.5], answers=[[], []], waiting={1: 1.0})
    served = told(book, begin=0.0, end=9.0)
    assert served.unanswered == 1
    assert served.ttft_p95 == pytest.approx(0.5 + 0.95 * 7.5)
    assert served.itl_p50 is None
