"""The official client against the real product: what a program that was written for OpenAI sees."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types.chat import (
    ChatCompletionNamedToolChoiceParam,
    ChatCompletionToolUnionParam,
    ChatCompletionUserMessageParam,
)

from tests.stack.conftest import Stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.model]
MODEL = "smollm2"
QUESTION: list[ChatCompletionUserMessageParam] = [
    {"role": "user", "content": "What is the capital of France?"}
]
LONG: list[ChatCompletionUserMessageParam] = [
    {"role": "user", "content": "Count from one to one thousand in words."}
]
ENDLESS = {"ignore_eos": True}
"""Answers until the context is full, however short the model's own answer would be."""


@pytest.fixture(scope="module")
def key(stack: Stack) -> str:
    return stack.api_key("openai client")


@pytest.fixture
def client(stack: Stack, key: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{stack.base_url}/v1", api_key=key, max_retries=0, timeout=120) as client:
        yield client


def test_the_deployment_is_listed(client: OpenAI) -> None:
    assert MODEL in [model.id for model in client.models.list()]
    assert client.models.retrieve(MODEL).owned_by == "tandem"


def test_a_chat_is_answered_with_usage(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model=MODEL, messages=QUESTION, temperature=0, max_tokens=24
    )
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage is not None
    assert 0 < answer.usage.completion_tokens <= 24
    assert answer.usage.prompt_tokens > 0


def test_a_stream_says_the_same_as_the_whole_answer(client: OpenAI) -> None:
    whole = client.chat.completions.create(
        model=MODEL, messages=QUESTION, temperature=0, max_tokens=24
    )
    stream = client.chat.completions.create(
        model=MODEL,
        messages=QUESTION,
        temperature=0,
        max_tokens=24,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(pieces) == whole.choices[0].message.content
    assert len([piece for piece in pieces if piece]) > 1
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_a_plain_completion_continues_the_text(client: OpenAI) -> None:
    answer = client.completions.create(
        model=MODEL, prompt="One, two, three, four,", temperature=0, max_tokens=8
    )
    assert "five" in answer.choices[0].text


def test_a_wrong_key_is_401(stack: Stack) -> None:
    with (
        OpenAI(base_url=f"{stack.base_url}/v1", api_key="sk-wrong", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError) as refused,
    ):
        stranger.chat.completions.create(model=MODEL, messages=QUESTION)
    assert refused.value.code == "invalid_api_key"


def test_an_unknown_model_is_404_and_the_known_ones_are_named(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(model="gpt-4o", messages=QUESTION)
    assert refused.value.code == "model_not_found"
    assert MODEL in str(refused.value)


def test_a_bad_parameter_is_400_and_named(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=9)
    assert refused.value.param == "temperature"


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_beyond_the_context_is_400(client: OpenAI, stream: bool) -> None:
    endless: ChatCompletionUserMessageParam = {"role": "user", "content": "word " * 20_000}
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model=MODEL, messages=[endless], stream=stream)
    assert refused.value.code == "context_length_exceeded"
    assert refused.value.param == "messages"


@pytest.mark.parametrize("stream", [False, True])
def test_hanging_up_frees_the_engine_at_once(stack: Stack, client: OpenAI, stream: bool) -> None:
    head = Head(stack)
    wait_for("an idle engine", lambda: head.stats()["running"] == 0)
    before = head.stats()
    impatient = client.with_options(timeout=2.0)
    if stream:
        chunks = impatient.chat.completions.create(
            model=MODEL, messages=LONG, stream=True, extra_body=ENDLESS
        )
        for _first in zip(range(3), chunks, strict=False):
            pass
        chunks.close()
    else:
        with pytest.raises(openai.APITimeoutError):
            impatient.chat.completions.create(model=MODEL, messages=LONG, extra_body=ENDLESS)
    wait_for("the abort", lambda: head.stats()["aborted"] == before["aborted"] + 1, 10)
    after = head.stats()
    assert after["running"] == after["waiting"] == 0
    assert after["kv_blocks_used"] == before["kv_blocks_used"] == 0


class Head:
    """The head's own statistics, read where it listens with the launch's own token."""

    def __init__(self, stack: Stack) -> None:
        self.url, self.token = _head_address(stack)

    def stats(self) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(f"{self.url}/stats", headers=headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            stats: dict[str, Any] = json.load(answer)
            return stats


def _head_address(stack: Stack) -> tuple[str, str]:
    code = (
        "from dashboard.models import Replica; "
        "r = Replica.objects.get(deployment__name='smollm2', status='ready'); "
        "print(r.base_url, r.token)"
    )
    url, token = stack.manage("shell", "--no-imports", "-c", code).split()[-2:]
    return url, token


def test_a_forced_call_fits_its_schema_whole_and_streamed(client: OpenAI) -> None:
    parameters: dict[str, object] = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["c", "f"]}},
        "required": ["city", "unit"],
        "additionalProperties": False,
    }
    tools: list[ChatCompletionToolUnionParam] = [
        {"type": "function", "function": {"name": "weather", "parameters": parameters}}
    ]
    choice: ChatCompletionNamedToolChoiceParam = {
        "type": "function",
        "function": {"name": "weather"},
    }
    answer = client.chat.completions.create(
        model=MODEL,
        messages=QUESTION,
        temperature=0,
        max_tokens=80,
        tools=tools,
        tool_choice=choice,
    )
    assert answer.choices[0].finish_reason == "tool_calls"
    calls = answer.choices[0].message.tool_calls
    assert calls is not None
    assert calls[0].type == "function"
    assert set(json.loads(calls[0].function.arguments)) == {"city", "unit"}
    with client.chat.completions.stream(
        model=MODEL,
        messages=QUESTION,
        temperature=0,
        max_tokens=80,
        tools=tools,
        tool_choice=choice,
    ) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls
    assert streamed is not None
    assert streamed[0].function.arguments == calls[0].function.arguments


def test_an_answer_has_the_form_and_the_probabilities_that_were_asked_for(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model=MODEL,
        messages=QUESTION,
        max_tokens=20,
        logprobs=True,
        top_logprobs=2,
        n=2,
        extra_body={"guided_choice": ["Paris", "London"]},
    )
    for choice in answer.choices:
        assert choice.message.content in ("Paris", "London")
        assert choice.finish_reason == "stop"
        assert choice.logprobs is not None
        assert choice.logprobs.content is not None
        text = "".join(entry.token for entry in choice.logprobs.content)
        assert text == choice.message.content
        assert all(len(entry.top_logprobs) == 2 for entry in choice.logprobs.content)
