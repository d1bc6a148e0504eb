"""Anthropic's own client: what a program that was written for it sees, whole and streamed."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic
from channels.db import database_sync_to_async

from dashboard.gateway.record_writer import record_writer
from dashboard.models import ApiRequest
from tests.dashboard.dialects_cast import CALL, SCHEMA, THINKING, Stage, staged
from tests.dashboard.fake_head import FakeHead, running
from tests.dashboard.gateway_cast import panel
from tests.dashboard.gateway_cast import stage as cast_stage
from tests.engine.head_world import MODEL

pytestmark = pytest.mark.django_db(transaction=True)
HELLO: Any = [{"role": "user", "content": "Say something"}]
TOOLS: Any = [{"name": "weather", "description": "Of a place.", "input_schema": SCHEMA}]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as found:
        yield found


def client_of(stage: Stage, **more: Any) -> AsyncAnthropic:
    settings: dict[str, Any] = {"base_url": stage.url, "api_key": stage.secret, "max_retries": 0}
    return AsyncAnthropic(**(settings | more))


def blocks_of(message: Any) -> list[dict[str, Any]]:
    """Ids of calls are another answer's."""
    return [block.to_dict() | {"id": ""} for block in message.content]


async def both(client: AsyncAnthropic, asked: Any) -> Any:
    """The message, which must be the same streamed and whole."""
    whole = await client.messages.create(**asked)
    async with client.messages.stream(**asked) as stream:
        streamed = await stream.get_final_message()
    assert blocks_of(streamed) == blocks_of(whole)
    assert streamed.stop_reason == whole.stop_reason
    assert streamed.stop_sequence == whole.stop_sequence
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    return whole


async def test_texts_stops_limits_and_counts(stage: Stage) -> None:
    async with client_of(stage) as client:
        asked = await stage.message("Here you are.", messages=HELLO, system="Be brief.")
        message = await both(client, asked)
        assert message.content[0].text == "Here you are."
        assert message.stop_reason == "end_turn"
        usage = message.usage
        counted = await client.messages.count_tokens(
            model=MODEL, messages=HELLO, system="Be brief."
        )
        assert usage.input_tokens + (usage.cache_read_input_tokens or 0) == counted.input_tokens
        stopped = await both(client, asked | {"stop_sequences": ["you", "zzz"]})
        assert stopped.content[0].text == "Here "
        assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "you")
        cut = await both(client, asked | {"max_tokens": 2})
        assert cut.stop_reason == "max_tokens"
        assert cut.usage.output_tokens == 2
    await record_writer().close()
    rows = await database_sync_to_async(list)(ApiRequest.objects.order_by("pk"))
    assert {row.endpoint for row in rows} == {"/v1/messages"}
    assert {row.outcome for row in rows} == {"answered"}
    assert rows[0].completion_tokens == usage.output_tokens


async def test_a_tool_is_called_and_its_result_goes_back(stage: Stage) -> None:
    async with client_of(stage) as client:
        asked = await stage.message(f"I look.\n{CALL}", messages=HELLO, tools=TOOLS)
        message = await both(client, asked)
        text, call = message.content
        assert text.text == "I look."
        assert (call.type, call.name, call.input) == ("tool_use", "weather", {"place": '漢字 "x"'})
        assert message.stop_reason == "tool_use"
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "Rain"}
        more = [
            *HELLO,
            {"role": "assistant", "content": [block.to_dict() for block in message.content]},
            {"role": "user", "content": [result, {"type": "text", "text": "So?"}]},
        ]
        again = await both(client, await stage.message("Rain.", messages=more, tools=TOOLS))
        assert again.content[0].text == "Rain."
        one = {"type": "any", "disable_parallel_tool_use": True}
        forced = await both(
            client, await stage.message(CALL, messages=HELLO, tools=TOOLS, tool_choice=one)
        )
        assert [block.type for block in forced.content] == ["tool_use"]


async def test_thinking_comes_only_to_who_asks_for_it() -> None:
    said = "<think>\nHm.\n</think>\n\nYes."
    async with staged(THINKING) as stage, client_of(stage) as client:
        wanted: Any = {"type": "enabled", "budget_tokens": 1024}
        message = await both(client, await stage.message(said, messages=HELLO, thinking=wanted))
        thought, text = message.content
        assert (thought.type, thought.thinking) == ("thinking", "Hm.")
        assert text.text == "Yes."
        more = [
            *HELLO,
            {"role": "assistant", "content": [block.to_dict() for block in message.content]},
            {"role": "user", "content": "Sure?"},
        ]
        quiet = await both(client, await stage.message("Yes.", messages=more))
        assert [block.to_dict() for block in quiet.content] == [{"type": "text", "text": "Yes."}]
        hidden = wanted | {"display": "omitted"}
        silent = await both(client, await stage.message(said, messages=more, thinking=hidden))
        assert [block.to_dict() for block in silent.content] == [{"type": "text", "text": "Yes."}]


async def test_an_answer_goes_on_and_has_the_form_of_a_schema(stage: Stage) -> None:
    async with client_of(stage) as client:
        begun = [*HELLO, {"role": "assistant", "content": "The word is"}]
        message = await both(client, await stage.message(" yes.", messages=begun))
        assert message.content[0].text == " yes."
        output: Any = {"format": {"type": "json_schema", "schema": SCHEMA}}
        said = '{"place": "x"}'
        message = await both(
            client, await stage.message(said, messages=HELLO, output_config=output)
        )
        assert message.content[0].text == said


async def test_keys_models_and_refusals_have_anthropics_shape(stage: Stage) -> None:
    async with client_of(stage) as client:
        models = await client.models.list()
        assert [model.id for model in models.data] == [MODEL]
        assert (await client.models.retrieve(MODEL)).type == "model"
        with pytest.raises(anthropic.NotFoundError) as missing:
            await client.messages.create(model="other", max_tokens=5, messages=HELLO)
        assert MODEL in str(missing.value)
        assert missing.value.request_id
        image: Any = {"type": "image", "source": {"type": "url", "url": "http://x"}}
        with pytest.raises(anthropic.BadRequestError) as refused:
            await client.messages.create(
                model=MODEL, max_tokens=5, messages=[{"role": "user", "content": [image]}]
            )
        assert refused.value.body == {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "messages[0].content[0].type: Invalid value 'image'.",
                "code": "invalid_value",
                "param": "messages[0].content[0].type",
            },
        }
        with pytest.raises(anthropic.BadRequestError, match="maximum context length"):
            await client.messages.create(model=MODEL, max_tokens=20_000, messages=HELLO)
    async with client_of(stage, api_key=None, auth_token=stage.secret) as client:
        assert (await client.models.list()).data
    async with client_of(stage, api_key="wrong") as client:
        with pytest.raises(anthropic.AuthenticationError):
            await client.messages.count_tokens(model=MODEL, messages=HELLO)


async def test_an_engine_that_dies_half_way_ends_the_stream_with_an_error() -> None:
    async with running(FakeHead(hold_at=1, dies=True)) as head:
        secret = await database_sync_to_async(cast_stage)(head)
        async with panel(secret) as asker:
            stage = Stage(None, asker, secret)
            async with client_of(stage) as client:
                stream = await client.messages.create(
                    model="smol", max_tokens=5, messages=HELLO, stream=True
                )
                with pytest.raises(anthropic.APIStatusError) as failed:
                    await read_on(stream, head)
    said: Any = failed.value.body
    assert said["error"]["code"] == "upstream_failed"


async def read_on(stream: Any, head: FakeHead) -> None:
    """To the end, which comes behind the first words."""
    async for event in stream:
        if event.type == "content_block_delta":
            head.release.set()
