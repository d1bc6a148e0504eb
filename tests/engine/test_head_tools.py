"""Tools: what the client gets is a call, whole or streamed, through the official client too."""

import json
from typing import Any

import pytest
from openai import AsyncOpenAI

from engine.checkpoint import Checkpoint
from tests.engine.bundled import altered_checkpoint
from tests.engine.head_world import MODEL, TOKEN, HeadWorld, head_world

Json = dict[str, Any]

TOOL: Json = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
            "additionalProperties": False,
        },
    },
}
ARGUMENTS = '{"place": "漢字 \\"x\\""}'
CALL = f'<tool_call>\n{{"name": "weather", "arguments": {ARGUMENTS}}}\n</tool_call>'
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{{ m.tool_calls | tojson if "
    "m.tool_calls }}<|im_end|>\n{% endfor %}{{ tools | tojson if tools }} [TOOL_CALLS]"
)


def said(events: list[Json], index: int = 0) -> Json:
    """A streamed choice, added up as clients do."""
    content, calls, finish = "", list[Json](), None
    for choice in (choice for event in events for choice in event["choices"]):
        if choice["index"] != index:
            continue
        assert finish is None, "nothing comes after the finish"
        finish = choice["finish_reason"]
        content += choice["delta"].get("content") or ""
        for piece in choice["delta"].get("tool_calls", ()):
            if "id" in piece:
                assert piece["index"] == len(calls)
                calls.append({"name": piece["function"]["name"], "arguments": ""})
            calls[piece["index"]]["arguments"] += piece["function"]["arguments"]
    return {"content": content, "calls": calls, "finish": finish}


def whole(body: Json) -> Json:
    choice = body["choices"][0]
    message = choice["message"]
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return {
        "content": message["content"] or "",
        "calls": calls,
        "finish": choice["finish_reason"],
    }


async def ask(world: HeadWorld, text: str, **changes: Any) -> Json:
    """The answer, which must be the same streamed and whole."""
    body: Json = {"tools": [TOOL], "max_tokens": 100} | changes
    await world.rehearse(text, **body)
    status, answer = await world.chat(**body)
    assert status == 200, answer
    streamed = said(await world.stream(**body))
    assert streamed == whole(answer)
    return streamed


async def test_a_call_is_told_by_name_and_exact_arguments() -> None:
    async with head_world() as world:
        answer = await ask(world, f"I will look.\n{CALL}")
        assert answer["content"] == "I will look."
        assert answer["calls"] == [{"name": "weather", "arguments": ARGUMENTS}]
        assert answer["finish"] == "tool_calls"
        twice = await ask(world, f"{CALL}\n{CALL}", max_tokens=200)
        assert (twice["content"], len(twice["calls"])) == ("", 2)
        once = await ask(world, f"{CALL}\n{CALL}", max_tokens=200, parallel_tool_calls=False)
        assert len(once["calls"]) == 1


@pytest.mark.hazard("truncated-tool-call")
async def test_a_call_cut_by_its_limit_finishes_with_length() -> None:
    async with head_world() as world:
        full = len(world.tokenizer.encode(CALL))
        for limit in range(1, full + 1, 4):
            answer = await ask(world, CALL, max_tokens=limit)
            assert answer["finish"] == "length"
            for call in answer["calls"]:
                assert ARGUMENTS.startswith(call["arguments"])


async def test_without_tools_or_with_choice_none_the_text_is_only_text() -> None:
    async with head_world() as world:
        for body in ({"tools": None}, {"tool_choice": "none"}):
            answer = await ask(world, CALL, **body)
            assert answer == {"content": CALL, "calls": [], "finish": "stop"}


def mistral() -> Checkpoint:
    return altered_checkpoint(template=TEMPLATE, controls=("[TOOL_CALLS]", "[ARGS]"))


async def test_control_tokens_that_are_no_text_still_reach_the_parser() -> None:
    async with head_world(checkpoint=mistral()) as world:
        answer = await ask(world, f"[TOOL_CALLS]weather[ARGS]{ARGUMENTS}")
        assert answer["calls"] == [{"name": "weather", "arguments": ARGUMENTS}]
        assert answer["finish"] == "tool_calls"
        _, same = await world.chat(tools=[TOOL], max_tokens=100)
        call_id = same["choices"][0]["message"]["tool_calls"][0]["id"]
        assert len(call_id) == 9
        assert call_id.isalnum()
        plain = await ask(world, "[TOOL_CALLS]weather[ARGS]{}", tools=None)
        assert plain["content"] == "weather{}"
        shown = await ask(world, "[ARGS]x", tools=None, skip_special_tokens=False)
        assert shown["content"] == "[ARGS]x"


async def test_the_official_client_reads_calls_whole_and_streamed() -> None:
    async with head_world(script=f"{CALL}<|im_end|>") as world:
        await ask(world, CALL)
        api = AsyncOpenAI(base_url=f"{world.url}/v1", api_key=TOKEN, max_retries=0)
        messages: Any = [{"role": "user", "content": "Say something"}]
        tools: Any = [TOOL]
        async with api:
            answer = await api.chat.completions.create(model=MODEL, messages=messages, tools=tools)
            calls = answer.choices[0].message.tool_calls
            assert calls is not None
            assert calls[0].type == "function"
            assert calls[0].function.arguments == ARGUMENTS
            assert answer.choices[0].message.content is None
            async with api.chat.completions.stream(
                model=MODEL, messages=messages, tools=tools
            ) as stream:
                final = await stream.get_final_completion()
        streamed = final.choices[0].message.tool_calls
        assert streamed is not None
        assert streamed[0].function.name == "weather"
        assert json.loads(streamed[0].function.arguments) == json.loads(ARGUMENTS)


HISTORY: list[Json] = [
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "weather", "arguments": ARGUMENTS},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Rain"},
]


@pytest.mark.parametrize("native", [True, False])
async def test_earlier_calls_and_results_reach_the_prompt(native: bool) -> None:
    checkpoint = mistral() if native else None
    async with head_world(checkpoint=checkpoint) as world:
        status, answer = await world.chat(
            messages=HISTORY, tools=[TOOL], max_tokens=1, prompt_logprobs=0
        )
        assert status == 200, answer
        seen = [next(iter(found.values())) for found in answer["prompt_logprobs"][1:]]
        text = "".join(token["decoded_token"] for token in seen)
    assert "Rain" in text
    assert '"arguments": {"place": ' in text
    assert "The weather of a place." in text
