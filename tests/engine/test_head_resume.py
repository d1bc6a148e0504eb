"""A stream that was cut goes on, at any head, byte for byte as if it had not been."""

from typing import Any

import pytest

from tests.engine.cut_streams import COMPLETIONS, check_every_cut, datas
from tests.engine.head_world import head_world

FUNCTION = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALLS = (
    'Let me see.\n<tool_call>\n{"name": "look", "arguments": {"at": "漢字 🙂"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "look", "arguments": {"at": "b"}}\n</tool_call>'
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
        body = {"tools": [FUNCTION], "max_tokens": 200, "logprobs": logprobs}
        await world.rehearse(CALLS, **body)
        whole = await check_every_cut(world, **body)
    assert '"finish_reason":"tool_calls"' in whole[-2]
