"""Whatever a client sends, it gets an answer or an error in OpenAI's shape, and nothing stays."""

import asyncio
import json
from typing import Any

import pytest

from tests.engine.head_world import HeadWorld, head_world
from tests.engine.request_bodies import bodies

COUNT = 500
AT_ONCE = 12
PATIENCE = 30.0
REFUSALS = {400, 404, 413, 503}


def check_error(body: Any) -> None:
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["message"]


def check_stream(text: str) -> None:
    """Events, exactly one end a choice, and [DONE]."""
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    ended: set[int] = set()
    for line in lines:
        for choice in json.loads(line)["choices"]:
            assert choice["index"] not in ended
            if choice["finish_reason"] is not None:
                assert choice["finish_reason"] in ("stop", "length", "tool_calls")
                ended.add(choice["index"])
    assert ended


async def send(world: HeadWorld, path: str, payload: bytes) -> bool:
    """Whether it was answered."""
    async with asyncio.timeout(PATIENCE), world.http.post(path, data=payload) as answer:
        text = await answer.text()
        assert answer.status == 200 or answer.status in REFUSALS, (payload, text)
        if answer.status != 200:
            check_error(json.loads(text))
            return False
        if answer.content_type == "text/event-stream":
            check_stream(text)
        else:
            finishes = [choice["finish_reason"] for choice in json.loads(text)["choices"]]
            assert finishes
            assert None not in finishes
        return True


@pytest.mark.hazard("terminal-event")
async def test_no_body_breaks_or_blocks_the_engine() -> None:
    sent = bodies(COUNT, seed=3)
    async with head_world(max_model_len=192, max_batch_size=16, token_budget=128) as world:
        answered = 0
        for start in range(0, COUNT, AT_ONCE):
            some = sent[start : start + AT_ONCE]
            answered += sum(await asyncio.gather(*(send(world, *one) for one in some)))
        scheduler = world.engine.scheduler
        assert (scheduler.running, scheduler.waiting, scheduler.pool.used) == (0, 0, 0)
        scheduler.audit()
        status, _ = await world.chat()
        assert status == 200
    assert COUNT / 5 < answered < COUNT
