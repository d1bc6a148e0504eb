"""Every refusal has OpenAI's shape, the right status, and names the field."""

from typing import Any

import pytest

from tests.engine.head_world import ASK, MODEL, HeadWorld, head_world

USER = {"role": "user", "content": "Hi"}

BAD_CHATS: list[tuple[dict[str, Any], str]] = [
    ({"temperature": 2.5}, "temperature"),
    ({"temperature": -0.1}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"temperature": True}, "temperature"),
    ({"top_p": 0}, "top_p"),
    ({"top_p": 1.1}, "top_p"),
    ({"top_k": -2}, "top_k"),
    ({"top_k": 1.5}, "top_k"),
    ({"top_k": 2**64}, "top_k"),
    ({"min_tokens": 2**64}, "min_tokens"),
    ({"max_tokens": 2**64}, "max_tokens"),
    ({"seed": "x"}, "seed"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": 1.5}, "max_tokens"),
    ({"max_completion_tokens": -1}, "max_completion_tokens"),
    ({"min_tokens": 30, "max_tokens": 20}, "min_tokens"),
    ({"stop": ["a"] * 17}, "stop"),
    ({"stop": [""]}, "stop"),
    ({"stop": [1]}, "stop"),
    ({"stream": "yes"}, "stream"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"n": 2}, "n"),
    ({"n": True}, "n"),
    ({"add_generation_prompt": False}, "add_generation_prompt"),
    ({"logprobs": True}, "logprobs"),
    ({"tools": [{"type": "function"}]}, "tools"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"logit_bias": {"5": 1}}, "logit_bias"),
    ({"presence_penalty": 0.5}, "presence_penalty"),
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
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0]"),
    ({"continue_final_message": True}, "continue_final_message"),
]

BAD_COMPLETIONS: list[tuple[dict[str, Any], str]] = [
    ({}, "prompt"),
    ({"prompt": ""}, "prompt"),
    ({"prompt": []}, "prompt"),
    ({"prompt": [1, "a"]}, "prompt"),
    ({"prompt": [49152]}, "prompt"),
    ({"prompt": [-1]}, "prompt"),
    ({"prompt": [[1, 2], []]}, "prompt"),
    ({"prompt": "x", "echo": True}, "echo"),
    ({"prompt": "x", "logprobs": 0}, "logprobs"),
    ({"prompt": "x", "best_of": 2}, "best_of"),
    ({"prompt": "x", "suffix": "y"}, "suffix"),
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
        for body, param in BAD_CHATS:
            await refused(world, "/v1/chat/completions", ASK | body, param)
        for body, param in BAD_COMPLETIONS:
            await refused(world, "/v1/completions", body, param)
        status, _ = await world.chat()
        assert status == 200
        assert world.engine.scheduler.pool.used == 0


async def test_defaults_written_out_and_unknown_fields_are_accepted() -> None:
    async with head_world() as world:
        status, _ = await world.chat(
            n=1, logprobs=False, tools=[], response_format={"type": "text"}, user="me",
            presence_penalty=0, frequency_penalty=0.0, logit_bias={}, stop=None, seed=None,
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


async def test_a_wrong_model_is_404() -> None:
    async with head_world() as world:
        status, answer = await world.chat(model="other")
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    assert MODEL in answer["error"]["message"]


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
    async with head_world(max_batch_size=1, token_budget=64, max_waiting=1) as world:
        status, answer = await world.post(
            "/v1/completions", prompt=["a b c", "d e f", "g h i"], max_tokens=50
        )
        assert (status, answer["error"]["type"]) == (503, "server_error")
        assert world.engine.scheduler.pool.used == 0
        assert world.engine.scheduler.waiting == 0
