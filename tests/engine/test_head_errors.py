"""Every refusal has OpenAI's shape, the right status, and names the field."""

import asyncio
from typing import Any

import pytest

from tests.engine.head_world import ASK, MODEL, HeadWorld, head_world, until

USER = {"role": "user", "content": "Hi"}

TOOL: dict[str, Any] = {"type": "function", "function": {"name": "f"}}
NAMED = {"type": "function", "function": {"name": "g"}}
JSON = {"response_format": {"type": "json_object"}}
BAD_SCHEMA = {"type": "json_schema", "json_schema": {"schema": {"type": "nonsense"}}}


def calling(function: object) -> dict[str, Any]:
    return {"messages": [{"role": "assistant", "tool_calls": [{"function": function}]}]}


BAD_BOTH: list[tuple[dict[str, Any], str]] = [
    ({"temperature": 2.5}, "temperature"),
    ({"temperature": -0.1}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"temperature": True}, "temperature"),
    ({"top_p": 0}, "top_p"),
    ({"top_p": 1.1}, "top_p"),
    ({"top_k": -2}, "top_k"),
    ({"top_k": 1.5}, "top_k"),
    ({"top_k": 2**64}, "top_k"),
    ({"min_p": 1.5}, "min_p"),
    ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"presence_penalty": 2.5}, "presence_penalty"),
    ({"frequency_penalty": "x"}, "frequency_penalty"),
    ({"logit_bias": [5]}, "logit_bias"),
    ({"logit_bias": {"5": 101}}, "logit_bias"),
    ({"logit_bias": {"5": True}}, "logit_bias"),
    ({"logit_bias": {"five": 1}}, "logit_bias"),
    ({"min_tokens": 2**64}, "min_tokens"),
    ({"max_tokens": 2**64}, "max_tokens"),
    ({"seed": "x"}, "seed"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": 1.5}, "max_tokens"),
    ({"min_tokens": 30, "max_tokens": 20}, "min_tokens"),
    ({"stop": ["a"] * 17}, "stop"),
    ({"stop": [""]}, "stop"),
    ({"stop": [1]}, "stop"),
    ({"stop": "x" * 2000}, "stop"),
    ({"stop_token_ids": 5}, "stop_token_ids"),
    ({"stop_token_ids": ["5"]}, "stop_token_ids"),
    ({"stop_token_ids": [10**7]}, "stop_token_ids"),
    ({"stream": "yes"}, "stream"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"stream": True, "stream_options": 5}, "stream_options"),
    ({"n": 0}, "n"),
    ({"n": True}, "n"),
    ({"n": 129}, "n"),
    ({"n": 2, "best_of": 3}, "best_of"),
    ({"prompt_logprobs": 21}, "prompt_logprobs"),
    ({"prompt_logprobs": 1, "stream": True}, "prompt_logprobs"),
    ({"priority": "high"}, "priority"),
    ({"cache_salt": ""}, "cache_salt"),
    ({"cache_salt": 5}, "cache_salt"),
    ({"suffix": "y"}, "suffix"),
    ({"use_beam_search": True}, "use_beam_search"),
    ({"truncate_prompt_tokens": 5}, "truncate_prompt_tokens"),
    ({"response_format": "json"}, "response_format"),
    ({"response_format": {"type": "xml"}}, "response_format"),
    ({"response_format": {"type": "json_schema"}}, "response_format"),
    ({"response_format": BAD_SCHEMA}, "response_format"),
    ({"guided_json": "{"}, "guided_json"),
    ({"guided_json": {"type": 5}}, "guided_json"),
    ({"guided_regex": "("}, "guided_regex"),
    ({"guided_grammar": "start: ("}, "guided_grammar"),
    ({"guided_choice": []}, "guided_choice"),
    ({"guided_choice": "x"}, "guided_choice"),
    ({"structured_outputs": []}, "structured_outputs"),
    ({"structured_outputs": {"regex": 5}}, "structured_outputs.regex"),
    ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs.structural_tag"),
    (JSON | {"guided_regex": "x"}, "guided_regex"),
    (JSON | {"ignore_eos": True}, "ignore_eos"),
    (JSON | {"min_tokens": 3}, "min_tokens"),
]

BAD_CHATS: list[tuple[dict[str, Any], str]] = [
    ({"max_completion_tokens": -1}, "max_completion_tokens"),
    ({"add_generation_prompt": "no"}, "add_generation_prompt"),
    ({"logprobs": 5}, "logprobs"),
    ({"top_logprobs": 5}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"echo": True}, "echo"),
    ({"modalities": ["text", "audio"]}, "modalities"),
    ({"audio": {"voice": "x"}}, "audio"),
    ({"functions": [{"name": "f"}]}, "functions"),
    ({"documents": "x"}, "documents"),
    ({"chat_template_kwargs": []}, "chat_template_kwargs"),
    ({"reasoning_effort": 5}, "reasoning_effort"),
    ({"tools": {}}, "tools"),
    ({"tools": [{"type": "function"}]}, "tools[0]"),
    ({"tools": [{"type": "search"}]}, "tools[0]"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
    (
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]},
        "tools[0].function.parameters",
    ),
    ({"tools": [TOOL, TOOL]}, "tools"),
    ({"tools": [TOOL], "tool_choice": "any"}, "tool_choice"),
    ({"tools": [TOOL], "tool_choice": NAMED}, "tool_choice"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tools": [TOOL], "tool_choice": "required", **JSON}, "tool_choice"),
    ({"tools": [TOOL], "tool_choice": "required", "ignore_eos": True}, "ignore_eos"),
    ({"messages": []}, "messages"),
    ({"messages": "Hi"}, "messages"),
    ({"messages": ["Hi"]}, "messages[0]"),
    ({"messages": [USER, {"role": "robot", "content": "x"}]}, "messages[1].role"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]},
        "messages[0].content",
    ),
    (
        {"messages": [{"role": "tool", "content": "x", "tool_call_id": 5}]},
        "messages[0].tool_call_id",
    ),
    (calling(None), "messages[0].tool_calls[0]"),
    (calling({"name": "f", "arguments": "{"}), "messages[0].tool_calls[0].function.arguments"),
    (calling({"name": "f", "arguments": [1]}), "messages[0].tool_calls[0].function.arguments"),
    ({"continue_final_message": True}, "continue_final_message"),
    ({"continue_final_message": True, "add_generation_prompt": True}, "add_generation_prompt"),
]

BAD_COMPLETIONS: list[tuple[dict[str, Any], str]] = [
    ({"prompt": None}, "prompt"),
    ({"prompt": ""}, "prompt"),
    ({"prompt": []}, "prompt"),
    ({"prompt": [1, "a"]}, "prompt"),
    ({"prompt": [49152]}, "prompt"),
    ({"prompt": [-1]}, "prompt"),
    ({"prompt": [[1, 2], []]}, "prompt"),
    ({"prompt": ["x"] * 64, "n": 3}, "n"),
    ({"logprobs": True}, "logprobs"),
    ({"logprobs": 21}, "logprobs"),
    ({"echo": "yes"}, "echo"),
    ({"tools": [TOOL]}, "tools"),
]


async def refused(world: HeadWorld, path: str, body: dict[str, Any], param: str) -> None:
    status, answer = await world.post(path, **body)
    assert status == 400, body
    error = answer["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["param"], error["type"]) == (param, "invalid_request_error"), body
    assert error["message"].endswith("."), body


async def test_a_bad_value_is_refused_by_name() -> None:
    async with head_world() as world:
        for body, param in BAD_BOTH + BAD_CHATS:
            await refused(world, "/v1/chat/completions", ASK | body, param)
        for body, param in BAD_BOTH + BAD_COMPLETIONS:
            await refused(world, "/v1/completions", {"prompt": "x"} | body, param)
        status, _ = await world.chat()
        assert status == 200
        assert world.engine.scheduler.pool.used == 0


@pytest.mark.hazard("bias-out-of-range")
async def test_a_bias_for_a_token_that_does_not_exist_is_refused() -> None:
    async with head_world() as world:
        for token in (world.tokenizer.size, 10**6, 2**31, -1):
            body = {"logit_bias": {str(token): 1}}
            await refused(world, "/v1/chat/completions", ASK | body, "logit_bias")
        status, _ = await world.chat(logit_bias={"0": 100, str(world.tokenizer.size - 1): -100})
        assert status == 200


async def test_defaults_written_out_and_unknown_fields_are_accepted() -> None:
    async with head_world() as world:
        status, _ = await world.chat(
            n=1, best_of=1, logprobs=False, tools=[], response_format={"type": "text"}, user="me",
            presence_penalty=0, tool_choice="auto", modalities=["text"], store=False,
            frequency_penalty=0.0, logit_bias={}, stop=None, seed=None,
            top_k=-1, metadata={"a": "b"}, something_new=True,
        )  # fmt: skip
    assert status == 200


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[1]", b'"x"', b'{"model": "\xff"}', b"[" * 100_000]
)
async def test_a_body_that_is_no_json_object_is_refused(payload: bytes) -> None:
    async with (
        head_world() as world,
        world.http.post("/v1/chat/completions", data=payload) as answer,
    ):
        assert answer.status == 400
        assert (await answer.json())["error"]["type"] == "invalid_request_error"


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"properties": value}
    return value


async def test_nesting_is_refused_or_answered_never_a_failure() -> None:
    async with head_world() as world:
        for depth in (150, 300, 450, 600, 900):
            tool = {"type": "function", "function": {"name": "f", "parameters": nested(depth)}}
            fields: list[dict[str, Any]] = [
                {"tools": [tool]},
                {"tools": [tool], "tool_choice": "required"},
                {"chat_template_kwargs": nested(depth)},
                {"guided_json": nested(depth)},
                calling({"name": "f", "arguments": nested(depth)}),
            ]
            for body in fields:
                status, answer = await world.chat(**body)
                assert status in (200, 400), answer


async def test_a_wrong_model_is_404() -> None:
    async with head_world() as world:
        status, answer = await world.chat(model="other")
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    assert MODEL in answer["error"]["message"]


@pytest.mark.hazard("context-overflow")
async def test_a_prompt_longer_than_the_context_is_refused_not_cut() -> None:
    async with head_world(max_model_len=64) as world:
        long = [{"role": "user", "content": "word " * 100}]
        status, answer = await world.chat(messages=long)
        assert (status, answer["error"]["code"]) == (400, "context_length_exceeded")
        assert answer["error"]["param"] == "messages"
        status, answer = await world.chat(max_tokens=60)
        assert (status, answer["error"]["code"]) == (400, "context_length_exceeded")
        assert answer["error"]["param"] == "max_tokens"
        status, answer = await world.post("/v1/completions", prompt=[5] * 64)
        assert (status, answer["error"]["param"]) == (400, "prompt")


async def test_unknown_paths_and_methods_have_the_same_shape() -> None:
    async with head_world() as world:
        status, answer = await world.post("/v1/embeddings")
        assert (status, answer["error"]["code"]) == (404, "not_found")
        async with world.http.get("/v1/chat/completions") as wrong_method:
            assert wrong_method.status == 405
            assert "error" in await wrong_method.json()


async def test_a_full_queue_is_503() -> None:
    async with head_world(max_batch_size=1, token_budget=64, max_waiting=2) as world:
        await world.ranks[0].allow(2)
        ask = {"max_tokens": 50}
        first = asyncio.create_task(world.chat(**ask))
        await until(lambda: world.engine.scheduler.running == 1, "the first request")
        second = asyncio.create_task(world.chat(**ask))
        await until(lambda: world.engine.scheduler.waiting == 1, "the second request")
        status, answer = await world.chat(n=2, **ask)
        assert (status, answer["error"]["type"]) == (503, "server_error")
        await world.ranks[0].allow(None)
        assert [status for status, _ in await asyncio.gather(first, second)] == [200, 200]
        assert world.engine.scheduler.pool.used == 0


async def test_more_answers_than_the_queue_ever_holds_are_refused() -> None:
    async with head_world(max_waiting=1) as world:
        status, answer = await world.chat(n=2)
        assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
        assert world.engine.scheduler.waiting == 0
