"""Translations lose nothing, invent nothing, and answer whatever is asked with a chat or an error
that names the field."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.gateway import pieces as wire
from dashboard.gateway.dialects.anthropic import translate as anthropic
from dashboard.gateway.dialects.anthropic.reply import MessageReply
from dashboard.gateway.dialects.asked import read_object, write
from dashboard.gateway.dialects.responses import asked as declared
from dashboard.gateway.dialects.responses import translate as responses
from dashboard.gateway.dialects.responses.reply import ResponseReply
from dashboard.gateway.dialects.spoken import error_body
from dashboard.gateway.errors import ApiError
from engine.errors import RequestError
from engine.head.api.requests import read_chat

Json = dict[str, Any]
ROUNDS = settings(max_examples=40, deadline=None)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
nothing = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, width=32) | texts
values = st.recursive(nothing, lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v))


def mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What is meant, and now and then anything else."""
    return st.one_of(good, good, good, good, good, good, values)


blocks = mostly(
    st.fixed_dictionaries({"type": st.just("text"), "text": texts})
    | st.fixed_dictionaries({"type": st.just("thinking"), "thinking": texts})
    | st.fixed_dictionaries(
        {"type": st.just("tool_use"), "id": texts, "name": texts, "input": values}
    )
    | st.fixed_dictionaries({"type": st.just("tool_result"), "tool_use_id": texts})
)
roles = st.sampled_from(["user", "assistant", "system"])
messages = st.fixed_dictionaries(
    {"role": roles, "content": mostly(texts | st.lists(blocks, max_size=3))}
)
message_requests = st.fixed_dictionaries(
    {"model": st.just("m"), "max_tokens": mostly(st.integers(1, 9))},
    optional={
        "messages": mostly(st.lists(messages, max_size=4)),
        "system": mostly(texts),
        "stop_sequences": mostly(st.lists(texts, max_size=2)),
        "temperature": mostly(st.floats(0, 1)),
        "thinking": mostly(st.just({"type": "adaptive"})),
        "tools": values,
        "tool_choice": mostly(st.just({"type": "any"})),
        "chat_template_kwargs": values,
    },
)
items = mostly(
    st.fixed_dictionaries({"role": roles, "content": texts})
    | st.fixed_dictionaries(
        {"type": st.just("function_call"), "call_id": texts, "name": texts, "arguments": texts}
    )
    | st.fixed_dictionaries(
        {"type": st.just("function_call_output"), "call_id": texts, "output": texts}
    )
    | st.fixed_dictionaries({"type": st.just("reasoning"), "summary": st.just([])})
)
response_requests = st.fixed_dictionaries(
    {"model": st.just("m"), "input": mostly(texts | st.lists(items, max_size=4))},
    optional={
        "instructions": mostly(texts),
        "tools": values,
        "text": mostly(st.just({"format": {"type": "json_object"}})),
        "reasoning": mostly(st.just({"effort": "none"})),
        "chat_template_kwargs": values,
    },
)


def refused(work: Callable[[], object]) -> bool:
    """Whether it is, with a sentence; anything else that is raised is a fault."""
    try:
        work()
    except (ApiError, RequestError) as error:
        return error.status == 400 and bool(str(error))
    return False


def judged(read: Callable[[], Json]) -> None:
    """It becomes what the engine takes, or is refused here or there."""
    found: list[Json] = []
    if not refused(lambda: found.append(read())):
        refused(lambda: read_chat(write(found[0])))


@ROUNDS
@given(message_requests)
def test_a_message_request_becomes_a_chat_or_is_refused(fields: Json) -> None:
    judged(lambda: anthropic.chat_of(fields, anthropic.read_asked(fields)))


@ROUNDS
@given(response_requests)
def test_a_response_request_becomes_a_chat_or_is_refused(fields: Json) -> None:
    judged(lambda: responses.chat_of(fields, responses.read_asked(fields)))


@ROUNDS
@given(st.lists(st.fixed_dictionaries({"role": roles, "content": texts}), min_size=1, max_size=6))
def test_every_word_of_a_conversation_arrives_in_order_and_in_turns(said: list[Json]) -> None:
    fields: Json = {"model": "m", "max_tokens": 5, "messages": said}
    chat = anthropic.chat_of(fields, anthropic.read_asked(fields))
    told = "".join(message["content"].replace("\n", "") for message in chat["messages"])
    assert told == "".join(message["content"] for message in said).replace("\n", "")
    turns = [message["role"] for message in chat["messages"]]
    assert all(one != other for one, other in itertools.pairwise(turns))
    assert chat.get("continue_final_message", False) == (said[-1]["role"] == "assistant")


pieces = st.lists(
    st.builds(wire.ReasoningDelta, texts.filter(bool))
    | st.builds(wire.TextDelta, texts.filter(bool))
    | st.builds(wire.Called, texts, texts)
    | st.builds(wire.Usage, st.integers(0, 9), st.integers(0, 9)),
    max_size=12,
)


def events_of(stream: bytes) -> list[Json]:
    blocks = stream.decode().split("\n\n")[:-1]
    return [json.loads(block.partition("data: ")[2]) for block in blocks]


@ROUNDS
@given(pieces, st.sampled_from(["stop", "length", "tool_calls"]), st.integers(1, 4))
def test_the_events_of_a_message_add_up_to_the_whole(
    said: list[wire.Piece], reason: str, step: int
) -> None:
    said = [wire.Usage(1), *said, wire.Finished(reason)]
    whole = MessageReply("1", "m").whole(said)
    reply = MessageReply("1", "m")
    chunks = [said[at : at + step] for at in range(0, len(said), step)]
    events = events_of(b"".join(map(reply.events, chunks)) + reply.ending())
    found: list[Json] = []
    for event in events:
        if event["type"] == "content_block_start":
            assert event["index"] == len(found)
            found.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta, block = event["delta"], found[-1]
            kind = {"text_delta": "text", "thinking_delta": "thinking"}[delta["type"]]
            block[kind] += delta[kind]
    assert found == whole["content"]
    kinds = [event["type"] for event in events]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == len(found)
    assert [kinds[0], *kinds[-2:]] == ["message_start", "message_delta", "message_stop"]
    assert events[-2]["delta"]["stop_reason"] == whole["stop_reason"]
    assert events[-2]["usage"] == whole["usage"]


@ROUNDS
@given(pieces, st.sampled_from(["stop", "length", "tool_calls"]), st.integers(1, 4))
def test_the_events_of_a_response_add_up_to_the_whole(
    said: list[wire.Piece], reason: str, step: int
) -> None:
    asked = declared.Asked(model="m")
    said = [*said, wire.Finished(reason)]
    whole = ResponseReply("1", asked, {}).whole(said)
    reply = ResponseReply("1", asked, {})
    chunks = [said[at : at + step] for at in range(0, len(said), step)]
    events = events_of(b"".join(map(reply.events, chunks)) + reply.ending())
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert done == whole["output"] == events[-1]["response"]["output"]
    assert events[-1]["type"] == f"response.{whole['status']}"


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"include": ["file_search_call.results"]}, "include[0]"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": "hot"}, "temperature"),
    ],
)
def test_a_response_that_cannot_be_honoured_is_refused_by_name(asked: Json, param: str) -> None:
    fields: Json = {"model": "m", "input": "Hi"} | asked
    with pytest.raises(ApiError) as wrong:
        responses.chat_of(fields, responses.read_asked(fields))
    assert (wrong.value.status, wrong.value.param) == (400, param)


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"speed": "fast"}, "speed"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0].type"),
        ({"messages": [{"role": "robot", "content": ""}]}, "messages[0].role"),
    ],
)
def test_a_message_that_cannot_be_honoured_is_refused_by_name(asked: Json, param: str) -> None:
    fields: Json = {"model": "m", "max_tokens": 5, "messages": []} | asked
    with pytest.raises(ApiError) as wrong:
        anthropic.chat_of(fields, anthropic.read_asked(fields))
    assert (wrong.value.status, wrong.value.param) == (400, param)


def test_what_the_engine_offers_beyond_a_dialect_passes_through() -> None:
    more: Json = {"seed": 7, "min_p": 0.1, "structured_outputs": {"regex": "a+"}, "priority": 3}
    message: Json = {"model": "m", "max_tokens": 5, "messages": [], "top_k": 4} | more
    response: Json = {"model": "m", "input": "Hi", "stop": ["x"]} | more
    told = anthropic.chat_of(message, anthropic.read_asked(message))
    assert told.items() >= (more | {"top_k": 4}).items()
    told = responses.chat_of(response, responses.read_asked(response))
    assert told.items() >= (more | {"stop": ["x"]}).items()


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b'"\\ud800"', b"[" * 100_000])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(ApiError) as wrong:
        read_object(body)
    assert wrong.value.code == "invalid_json"


def test_arguments_that_were_cut_are_kept_as_they_are() -> None:
    said: list[wire.Piece] = [
        wire.Called("1", "f"),
        wire.Argued('{"a": '),
        wire.Finished("length"),
    ]
    assert MessageReply("1", "m").whole(said)["content"][0]["input"] == {"partial_json": '{"a": '}


def test_half_a_character_is_refused() -> None:
    assert refused(lambda: write({"model": "m", "user": "\ud800"}))


def test_an_error_is_told_in_the_words_of_who_asked() -> None:
    error = ApiError("Too large.", status=413, code="request_too_large")
    plain = json.loads(error_body(error, "/v1/chat/completions", {}))
    assert plain["error"]["type"] == "invalid_request_error"
    for path, headers in (("/v1/messages", {}), ("/v1/models", {"anthropic-version": "1"})):
        told = json.loads(error_body(error, path, headers))
        assert (told["type"], told["error"]["type"]) == ("error", "request_too_large")
