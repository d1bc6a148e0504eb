"""Probabilities have OpenAI's shapes and name exactly the text that was sent."""

import math
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.engine.head_world import MODEL, TOKEN, head_world

Json = dict[str, Any]


def text_of(entries: list[Json]) -> str:
    return b"".join(bytes(entry["bytes"]) for entry in entries).decode()


async def test_chat_entries_are_the_text_and_its_alternatives() -> None:
    async with head_world() as world:
        body: Json = {"max_tokens": 40, "logprobs": True, "top_logprobs": 3}
        _, answer = await world.chat(**body)
        events = await world.stream(**body)
    choice = answer["choices"][0]
    entries = choice["logprobs"]["content"]
    assert len(entries) == 40
    assert text_of(entries).startswith(choice["message"]["content"])
    for entry in entries:
        assert set(entry) == {"token", "logprob", "bytes", "top_logprobs"}
        assert entry["logprob"] == -0.5
        assert len(entry["top_logprobs"]) == 3
        assert entry["top_logprobs"][0]["token"] == entry["token"]
    chunks = [choice for event in events for choice in event["choices"]]
    streamed = [e for c in chunks if c["logprobs"] for e in c["logprobs"]["content"]]
    assert streamed == entries


@pytest.mark.hazard("stop-strings")
async def test_tokens_behind_a_stop_string_are_not_reported() -> None:
    async with head_world() as world:
        _, free = await world.chat(max_tokens=60, logprobs=True)
        text = free["choices"][0]["message"]["content"]
        stop = text[text.index("jumps") + 2 :][:9]
        body: Json = {"max_tokens": 60, "logprobs": True, "stop": [stop, f"{text[:3]}\0"]}
        _, answer = await world.chat(**body)
        events = await world.stream(**body)
    choice = answer["choices"][0]
    sent = choice["message"]["content"]
    entries = choice["logprobs"]["content"]
    assert text_of(entries).startswith(sent)
    assert not text_of(entries[:-1]).startswith(sent), "only the last token goes beyond the text"
    chunks = [choice for event in events for choice in event["choices"]]
    assert [e for c in chunks if c["logprobs"] for e in c["logprobs"]["content"]] == entries
    seen = heard = ""
    for chunk in chunks:
        heard += chunk["delta"].get("content", "")
        seen += text_of(chunk["logprobs"]["content"]) if chunk["logprobs"] else ""
        if chunk["finish_reason"] is None:
            assert heard.startswith(seen), "no token is reported before its text was sent"


async def test_completions_report_lists_and_offsets() -> None:
    async with head_world() as world:
        prompt = "Once upon a time"
        body: Json = {"prompt": prompt, "max_tokens": 30, "logprobs": 2}
        _, answer = await world.post("/v1/completions", **body)
        choice = answer["choices"][0]
        logprobs = choice["logprobs"]
        for token, offset in zip(logprobs["tokens"], logprobs["text_offset"], strict=True):
            if not token.startswith("bytes:"):
                assert choice["text"][offset:].startswith(token)
        assert all(len(top) in (2, 3) for top in logprobs["top_logprobs"])
        _, echoed = await world.post("/v1/completions", echo=True, **body)
        events = await world.stream("/v1/completions", echo=True, **body)
    both = echoed["choices"][0]
    count = len(world.tokenizer.encode(prompt))
    assert both["text"] == prompt + choice["text"]
    assert both["logprobs"]["tokens"][count:] == logprobs["tokens"]
    assert "".join(both["logprobs"]["tokens"][:count]) == prompt
    assert both["logprobs"]["token_logprobs"][0] is None
    assert both["logprobs"]["text_offset"][count:] == [
        len(prompt) + offset for offset in logprobs["text_offset"]
    ]
    chunks = [choice for event in events for choice in event["choices"]]
    assert "".join(chunk["text"] for chunk in chunks) == both["text"]
    for name in both["logprobs"]:
        parts = [item for c in chunks if c["logprobs"] for item in c["logprobs"][name]]
        assert parts == both["logprobs"][name]


async def test_a_prompt_can_be_scored_without_an_answer() -> None:
    async with head_world() as world:
        body: Json = {"prompt": [5, 6, 7], "max_tokens": 0, "echo": True, "logprobs": 1}
        status, answer = await world.post("/v1/completions", **body)
        events = await world.stream("/v1/completions", **body)
        refused, _ = await world.post("/v1/completions", prompt="x", max_tokens=0)
    assert (status, refused) == (200, 400)
    choice = answer["choices"][0]
    assert choice["text"] == world.tokenizer.decode([5, 6, 7])
    assert len(choice["logprobs"]["tokens"]) == 3
    assert choice["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 0
    assert "".join(event["choices"][0]["text"] for event in events) == choice["text"]


async def test_prompt_logprobs_name_every_token_after_the_first() -> None:
    async with head_world() as world:
        prompts = [[5, 6, 7, 8], [9, 10]]
        _, answer = await world.post(
            "/v1/completions", prompt=prompts, max_tokens=2, prompt_logprobs=1, n=2
        )
    for index, choice in enumerate(answer["choices"]):
        first, *rest = choice["prompt_logprobs"]
        assert first is None
        assert [int(next(iter(found))) for found in rest] == prompts[index // 2][1:]
        assert all(set(one) == {"logprob", "rank", "decoded_token"} for found in rest
                   for one in found.values())  # fmt: skip
        assert choice["logprobs"] is None


async def test_the_official_client_reads_them() -> None:
    async with head_world() as world:
        api = AsyncOpenAI(base_url=f"{world.url}/v1", api_key=TOKEN, max_retries=0)
        async with api:
            chat = await api.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": "Hi"}],
                max_tokens=3,
                logprobs=True,
                top_logprobs=1,
            )
            raw = await api.completions.create(
                model=MODEL, prompt="x", max_tokens=3, logprobs=1, echo=True
            )
    logprobs = chat.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert math.isclose(logprobs.content[0].logprob, -0.5)
    assert raw.choices[0].logprobs is not None
    assert raw.choices[0].logprobs.tokens is not None
    assert raw.choices[0].logprobs.tokens[0] == "x"
