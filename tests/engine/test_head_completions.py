"""Raw completions: texts, lists of texts, token ids; streamed and whole."""

from tests.engine.head_world import head_world


async def test_texts_and_ids_answer_alike() -> None:
    async with head_world() as world:
        ids = world.tokenizer.encode("Once upon a time")
        _, by_text = await world.post("/v1/completions", prompt="Once upon a time", max_tokens=9)
        _, by_ids = await world.post("/v1/completions", prompt=ids, max_tokens=9)
    assert by_text["object"] == "text_completion"
    assert by_text["choices"][0]["text"] == by_ids["choices"][0]["text"]
    assert by_text["choices"][0]["text"] == world.expected(len(ids), 9)
    assert by_ids["usage"]["prompt_tokens"] == len(ids)


async def test_several_prompts_have_several_choices() -> None:
    async with head_world() as world:
        prompts = ["one", "two three four", "five six"]
        lengths = [len(world.tokenizer.encode(prompt)) for prompt in prompts]
        _, whole = await world.post("/v1/completions", prompt=prompts, max_tokens=8)
        events = await world.stream("/v1/completions", prompt=prompts, max_tokens=8)
    expected = [world.expected(length, 8) for length in lengths]
    assert [choice["text"] for choice in whole["choices"]] == expected
    assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2]
    streamed = ["", "", ""]
    for event in events:
        for choice in event["choices"]:
            streamed[choice["index"]] += choice["text"]
    assert streamed == expected
    assert whole["usage"]["completion_tokens"] == 24


async def test_the_default_length_is_openais() -> None:
    async with head_world() as world:
        _, whole = await world.post("/v1/completions", prompt="x")
    assert whole["usage"]["completion_tokens"] == 16
