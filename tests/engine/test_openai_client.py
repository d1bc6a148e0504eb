"""The official client works against a head, and gets the errors it expects."""

import openai
import pytest
from openai import AsyncOpenAI

from engine.errors import said
from tests.engine.head_world import MODEL, TOKEN, HeadWorld, head_world


def client(world: HeadWorld, key: str = TOKEN) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{world.url}/v1", api_key=key, max_retries=0)


async def test_models_chat_and_completions() -> None:
    async with head_world() as world, client(world) as api:
        assert [model.id async for model in api.models.list()] == [MODEL]
        assert (await api.models.retrieve(MODEL)).id == MODEL
        chat = await api.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "Hi"}], max_completion_tokens=9
        )
        assert chat.usage is not None
        assert chat.choices[0].message.content == world.expected(chat.usage.prompt_tokens, 9)
        raw = await api.completions.create(model=MODEL, prompt=[5, 6, 7], max_tokens=4)
        assert raw.choices[0].text == world.expected(3, 4)


async def test_streaming_with_usage() -> None:
    async with head_world() as world, client(world) as api:
        stream = await api.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Hi"}],
            max_tokens=9,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens == 9
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == world.expected(usage.prompt_tokens, 9)


async def test_errors_arrive_as_their_exceptions() -> None:
    async with head_world(max_model_len=64) as world, client(world) as api:
        ask = api.completions.create
        with pytest.raises(openai.NotFoundError):
            await ask(model="other", prompt="x")
        with pytest.raises(openai.BadRequestError) as bad:
            await ask(model=MODEL, prompt="x", temperature=3)
        assert bad.value.param == "temperature"
        with pytest.raises(openai.BadRequestError) as long:
            await ask(model=MODEL, prompt="word " * 100)
        assert long.value.code == "context_length_exceeded"
        async with client(world, "wrong") as stranger:
            with pytest.raises(openai.AuthenticationError):
                await stranger.models.list()


async def test_an_engine_that_gives_up_midway_raises_in_the_stream() -> None:
    async with head_world() as world, client(world) as api:
        await world.ranks[0].allow(3)
        stream = await api.completions.create(model=MODEL, prompt="x", max_tokens=50, stream=True)
        for _ in range(3):
            await anext(stream.__aiter__())
        world.engine.finish(said("Rank 0 has gone for good."))
        with pytest.raises(openai.APIError, match="Rank 0 has gone"):
            await anext(stream.__aiter__())
