"""A chat answers the same text streamed or whole, with truthful usage."""

import asyncio

import pytest

from engine.config import ParallelPlan
from tests.engine.head_world import head_world, text_of


@pytest.mark.hazard("split-utf8")
@pytest.mark.parametrize("plan", ["tp=1", "tp=2", "pp=2", "tp=2,pp=3"])
async def test_streamed_and_whole_answers_are_the_same(plan: str) -> None:
    async with head_world(plan=ParallelPlan.parse(plan)) as world:
        status, whole = await world.chat(max_tokens=60)
        events = await world.stream(max_tokens=60)
    assert status == 200
    usage = whole["usage"]
    text = world.expected(usage["prompt_tokens"], 60)
    assert whole["choices"][0]["message"]["content"] == text
    assert text_of(events) == text
    assert "漢字 🙂" in text
    assert "\ufffd" not in text
    assert whole["choices"][0]["finish_reason"] == "length"
    assert events[-1]["choices"][0]["finish_reason"] == "length"
    assert usage["completion_tokens"] == 60
    assert usage["total_tokens"] == usage["prompt_tokens"] + 60


async def test_a_stream_says_who_speaks_then_one_event_a_token() -> None:
    async with head_world() as world:
        events = await world.stream(max_tokens=7)
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len(events) == 1 + 7
    assert len({event["id"] for event in events}) == 1
    assert all("usage" not in event for event in events)


async def test_usage_comes_last_without_choices_when_asked_for() -> None:
    async with head_world() as world:
        _, whole = await world.chat(max_tokens=5)
        events = await world.stream(max_tokens=5, stream_options={"include_usage": True})
    assert events[-1]["choices"] == []
    assert all(event["usage"] is None for event in events[:-1])
    usage = events[-1]["usage"]
    assert usage["completion_tokens"] == 5
    assert usage["prompt_tokens"] == whole["usage"]["prompt_tokens"]
    whole_blocks = (usage["prompt_tokens"] - 1) // 16 * 16
    assert usage["prompt_tokens_details"]["cached_tokens"] == whole_blocks > 0


async def test_usage_can_run_along() -> None:
    async with head_world() as world:
        events = await world.stream(max_tokens=5, stream_options={"continuous_usage_stats": True})
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts == sorted(counts)
    assert counts[-1] == 5
    assert events[-1]["choices"] != []


async def test_the_end_of_sequence_token_ends_the_answer_unseen() -> None:
    async with head_world(script="one two three<|im_end|>") as world:
        status, whole = await world.chat(max_tokens=50)
        _, longer = await world.chat(max_tokens=50, ignore_eos=True)
    assert status == 200
    choice = whole["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert "im_end" not in choice["message"]["content"]
    assert longer["usage"]["completion_tokens"] == 50


async def test_an_answer_may_fill_the_context_when_no_limit_is_given() -> None:
    async with head_world(max_model_len=64) as world:
        _, whole = await world.chat(max_tokens=None)
    assert whole["usage"]["total_tokens"] == 64
    assert whole["choices"][0]["finish_reason"] == "length"


async def test_many_chats_at_once_all_get_their_own_answer() -> None:
    async with head_world(max_batch_size=8, token_budget=32, kv_cache_tokens=1024) as world:
        asks = [
            world.chat(messages=[{"role": "user", "content": "word " * n}], max_tokens=40)
            for n in range(1, 25)
        ]
        answers = await asyncio.gather(*asks)
        stats = await world.stats()
    for status, whole in answers:
        assert status == 200
        text = world.expected(whole["usage"]["prompt_tokens"], 40)
        assert whole["choices"][0]["message"]["content"] == text
    assert (stats.running, stats.waiting, stats.kv_blocks_used) == (0, 0, 0)
    assert stats.finished == 24
