"""Several answers to one request: each complete, each by its index, counted once."""

from tests.engine.head_world import head_world


async def test_n_answers_whole_and_interleaved_in_a_stream() -> None:
    async with head_world() as world:
        status, whole = await world.chat(n=3, best_of=3, max_tokens=12)
        assert status == 200
        events = await world.stream(n=3, max_tokens=12, stream_options={"include_usage": True})
    assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2]
    texts = [choice["message"]["content"] for choice in whole["choices"]]
    streamed, roles, finishes = ["", "", ""], [0, 0, 0], [0, 0, 0]
    for choice in (choice for event in events for choice in event["choices"]):
        index, delta = choice["index"], choice["delta"]
        assert not finishes[index], "nothing comes after an answer's end"
        streamed[index] += delta.get("content") or ""
        roles[index] += "role" in delta
        finishes[index] += choice["finish_reason"] is not None
    assert streamed == texts
    assert roles == finishes == [1, 1, 1]
    assert events[-1]["usage"] == whole["usage"] | {
        "prompt_tokens_details": events[-1]["usage"]["prompt_tokens_details"]
    }
    assert whole["usage"]["completion_tokens"] == 36
    assert whole["usage"]["total_tokens"] == whole["usage"]["prompt_tokens"] + 36


async def test_every_prompt_has_its_n_answers_in_order() -> None:
    async with head_world() as world:
        prompts = [[5] * 4, [6] * 9]
        _, whole = await world.post("/v1/completions", prompt=prompts, n=2, max_tokens=6)
    expected = [world.expected(4, 6)] * 2 + [world.expected(9, 6)] * 2
    assert [choice["text"] for choice in whole["choices"]] == expected
    assert whole["usage"]["prompt_tokens"] == 13


async def test_own_stop_tokens_end_an_answer_unseen() -> None:
    async with head_world() as world:
        ids = world.tokenizer.encode(" fox")
        _, whole = await world.chat(max_tokens=60, stop_token_ids=ids)
    choice = whole["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert "fox" not in choice["message"]["content"]
