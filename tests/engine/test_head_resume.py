"""A stream that was cut goes on, at any head, byte for byte as if it had not been."""

import json
from typing import Any

import pytest

from tests.engine.bundled import altered_checkpoint
from tests.engine.cut_streams import (
    CHAT,
    COMPLETIONS,
    Journal,
    check_every_cut,
    datas,
    events_of,
    journaled,
    request,
)
from tests.engine.head_world import head_world, text_of
from tests.engine.test_reasoning import TEMPLATE

FUNCTION = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALLS = (
    'Hm.\n<tool_call>\n{"name": "look", "arguments": {"at": "漢"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
)
USAGE = {"include_usage": True, "continuous_usage_stats": True}


@pytest.mark.parametrize(
    "body",
    [
        {"max_tokens": 40},
        {"max_tokens": 40, "stream_options": USAGE},
        {"stop": ["lazy cat", "zy dog.", "Ünï"], "max_tokens": 40},
        {"logprobs": True, "top_logprobs": 2, "max_tokens": 40},
        {"logprobs": True, "stop": ["jumps under", "漢字 works"], "max_tokens": 40},
        {"min_tokens": 12, "stop_token_ids": [1, 2, 5], "max_tokens": 14},
    ],
    ids=["unicode", "usage", "stops", "logprobs", "logprobs and stops", "limits"],
)
async def test_a_chat_goes_on_from_every_chunk(body: dict[str, Any]) -> None:
    async with head_world() as world:
        await check_every_cut(world, **body)


async def test_three_answers_go_on_from_every_chunk() -> None:
    async with head_world() as world:
        whole = await check_every_cut(
            world, n=3, max_tokens=10, stream_options={"include_usage": True}
        )
    assert len(datas(whole, 2)) == 11


@pytest.mark.parametrize(
    "body",
    [
        {"max_tokens": 30},
        {"max_tokens": 12, "logprobs": 2, "echo": True},
        {"max_tokens": 0, "logprobs": 1, "echo": True},
    ],
    ids=["plain", "echo", "echo alone"],
)
async def test_a_completion_goes_on_from_every_chunk(body: dict[str, Any]) -> None:
    async with head_world() as world:
        await check_every_cut(world, COMPLETIONS, prompt="The quick brown", **body)


@pytest.mark.parametrize("logprobs", [False, True])
async def test_tool_calls_go_on_from_every_chunk(logprobs: bool) -> None:
    async with head_world() as world:
        body: dict[str, Any] = {"tools": [FUNCTION], "max_tokens": 200, "logprobs": logprobs}
        await world.rehearse(CALLS, **body)
        whole = await check_every_cut(world, **body)
    assert '"finish_reason":"tool_calls"' in whole[-2]


async def test_reasoning_goes_on_from_every_chunk() -> None:
    async with head_world(checkpoint=altered_checkpoint(template=TEMPLATE)) as world:
        body: dict[str, Any] = {"max_tokens": 60, "stop": ["<x", "never"]}
        await world.rehearse("<think>\nHm, 漢字.\n</think>\n\nYes. <b>", **body)
        whole = await check_every_cut(world, **body)
    assert any('"reasoning_content":"H' in event for event in whole)


async def test_a_whole_answer_goes_on_from_every_token() -> None:
    async with head_world() as world:
        asked = request(CHAT, {"stream": False, "n": 2, "max_tokens": 12})
        whole = await events_of(world, CHAT, asked, "whole")
        journal = Journal()
        for cut, event in enumerate(whole[:-1]):
            journal.take(event)
            journal.sent = [0, 0]
            rest = await events_of(world, "/resume", journal.resumption(CHAT, asked), f"cut {cut}")
            assert rest[-2].partition("data: ")[2] == whole[-2].partition("data: ")[2]


async def test_another_vocabulary_goes_on_from_the_text() -> None:
    """Nothing of what was sent comes again, and the count of chunks has no gap."""
    other = altered_checkpoint(controls=("<|other|>",))
    async with head_world() as world, head_world(checkpoint=other) as second:
        asked = request(CHAT, {"max_tokens": 24, "logprobs": True})
        whole = await events_of(world, CHAT, asked, "whole")
        journal, said = Journal(), ""
        for cut, event in enumerate(whole[:-1], 1):
            journal.take(event)
            said += text_of([json.loads(event.partition("data: ")[2])])
            ended = [cut == len(whole) - 1]
            texts = {"texts": [{"content": said}], "ended": ended}
            resumption = journal.resumption(CHAT, asked) | texts
            rest = await events_of(second, "/resume", resumption, f"cut {cut}")
            chunks = [json.loads(data) for data in datas(rest, 0)]
            finishes = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
            assert finishes == [] if ended[0] else finishes[-1] == "length"
            numbers = [line[4:] for e in rest for line in e.split("\n") if line[:4] == "id: "]
            assert numbers == [str(cut + index) for index in range(1, len(numbers) + 1)]
            prompt = len(second.tokenizer.encode(said, first=False)) if said else 0
            assert ended[0] or len(chunks) == 24 - prompt


async def test_only_its_own_model_goes_on_with_a_tool_call() -> None:
    async with head_world() as world:
        whole = await events_of(world, CHAT, request(CHAT, {}), "whole")
        journal = Journal()
        journal.take(whole[0])
        resumption = journal.resumption(CHAT, request(CHAT, {}))
        resumption["origin"] = journal.origin | {"vocabulary": "of another"}
        resumption |= {"texts": [None], "ended": [False]}
        headers = journaled("cut")
        async with world.http.post("/resume", json=resumption, headers=headers) as answer:
            assert answer.status == 409
            assert (await answer.json())["error"]["code"] == "not_portable"
