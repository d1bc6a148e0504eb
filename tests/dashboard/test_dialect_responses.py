"""OpenAI's own client at `/v1/responses`: one answer whole and streamed, or a clear refusal."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from channels.db import database_sync_to_async
from openai import AsyncOpenAI

from tests.dashboard.dialects_cast import ARGUMENTS, CALL, SCHEMA, THINKING, Stage, staged
from tests.dashboard.fake_head import FakeHead, running
from tests.dashboard.gateway_cast import panel
from tests.dashboard.gateway_cast import stage as cast_stage
from tests.engine.head_world import MODEL

pytestmark = pytest.mark.django_db(transaction=True)
TOOLS: Any = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": True}]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as found:
        yield found


def client_of(stage: Stage) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{stage.url}/v1", api_key=stage.secret, max_retries=0)


def items_of(response: Any) -> list[dict[str, Any]]:
    """Ids are another answer's."""
    return [item.to_dict() | {"id": "", "call_id": ""} for item in response.output]


async def both(client: AsyncOpenAI, asked: Any) -> Any:
    """The response, which must be the same streamed and whole."""
    whole = await client.responses.create(**asked)
    events = [event async for event in await client.responses.create(**asked, stream=True)]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[-1].type == f"response.{whole.status}"
    last: Any = events[-1]
    assert items_of(last.response) == items_of(whole)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text
    added = [event for event in events if event.type == "response.output_item.added"]
    done = [event for event in events if event.type == "response.output_item.done"]
    assert len(added) == len(done) == len(whole.output)
    return whole


async def test_texts_limits_scores_and_counts(stage: Stage) -> None:
    async with client_of(stage) as client:
        asked = await stage.response("Here you are.", input="Say something", instructions="Brief.")
        response = await both(client, asked)
        assert response.output_text == "Here you are."
        assert response.status == "completed"
        assert response.instructions == "Brief."
        assert response.store is False
        usage = response.usage
        assert usage.total_tokens == usage.input_tokens + usage.output_tokens
        counted = await client.responses.input_tokens.count(
            model=MODEL, input="Say something", instructions="Brief."
        )
        assert counted.input_tokens == usage.input_tokens
        cut = await both(client, asked | {"max_output_tokens": 2})
        assert cut.status == "incomplete"
        assert cut.incomplete_details.reason == "max_output_tokens"
        scored = await both(client, asked | {"top_logprobs": 2})
        text = scored.output[0].content[0]
        assert "".join(token.token for token in text.logprobs) == "Here you are."
        assert len(text.logprobs[0].top_logprobs) == 2


async def test_a_tool_is_called_and_its_result_goes_back(stage: Stage) -> None:
    async with client_of(stage) as client:
        asked = await stage.response(f"I look.\n{CALL}", input="Weather?", tools=TOOLS)
        response = await both(client, asked)
        text, call = response.output
        assert text.content[0].text == "I look."
        assert (call.type, call.name, call.arguments) == ("function_call", "weather", ARGUMENTS)
        more = [
            {"role": "user", "content": "Weather?"},
            *(item.to_dict() for item in response.output),
            {"type": "function_call_output", "call_id": call.call_id, "output": "Rain"},
        ]
        again = await both(client, await stage.response("Rain.", input=more, tools=TOOLS))
        assert again.output_text == "Rain."
        named = {"type": "function", "name": "weather"}
        forced = await both(
            client, await stage.response(CALL, input="?", tools=TOOLS, tool_choice=named)
        )
        assert [item.type for item in forced.output] == ["function_call"]


async def test_reasoning_is_an_item_that_can_be_sent_back() -> None:
    async with staged(THINKING) as stage, client_of(stage) as client:
        asked = await stage.response("<think>\nHm.\n</think>\n\nYes.", input="Sure?")
        response = await both(client, asked)
        thought, text = response.output
        assert thought.type == "reasoning"
        assert thought.content[0].text == "Hm."
        assert text.content[0].text == "Yes."
        more = [*(item.to_dict() for item in response.output), {"role": "user", "content": "?"}]
        again = await both(client, await stage.response("No.", input=more))
        assert again.output_text == "No."


async def test_an_answer_has_the_form_of_a_schema(stage: Stage) -> None:
    form = {"format": {"type": "json_schema", "name": "place", "schema": SCHEMA}}
    async with client_of(stage) as client:
        asked = await stage.response('{"place": "x"}', input="Where?", text=form)
        assert (await both(client, asked)).output_text == '{"place": "x"}'


async def test_a_refusal_names_its_field_and_a_lost_response_is_told_not_to_be_kept() -> None:
    secret = await database_sync_to_async(cast_stage)(None)
    async with panel(secret) as asker, client_of(Stage(None, asker, secret)) as client:
        with pytest.raises(openai.BadRequestError, match="are not kept here") as refused:
            await client.responses.create(model="smol", input="Hi", previous_response_id="resp_1")
        with pytest.raises(openai.NotFoundError, match="are not kept here"):
            await client.responses.retrieve("resp_1")
    assert refused.value.param == "previous_response_id"


async def test_an_engine_that_dies_half_way_ends_in_a_failed_response() -> None:
    async with running(FakeHead(hold_at=1, dies=True)) as head:
        secret = await database_sync_to_async(cast_stage)(head)
        async with panel(secret) as asker, client_of(Stage(None, asker, secret)) as client:
            events: list[Any] = []
            async for event in await client.responses.create(model="smol", input="Hi", stream=True):
                events.append(event)
                if event.type == "response.output_text.delta":
                    head.release.set()
    assert events[-1].type == "response.failed"
    assert "stopped answering" in events[-1].response.error.message
