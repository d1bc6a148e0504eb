"""Stop strings end an answer before they show, streamed or whole."""

import pytest

from tests.engine.head_world import head_world, text_of


@pytest.mark.hazard("stop-strings")
async def test_the_stop_string_never_shows_and_the_blocks_come_back() -> None:
    async with head_world() as world:
        _, free = await world.chat(max_tokens=60)
        text = free["choices"][0]["message"]["content"]
        at = text.index("jumps over")
        # Begins and ends inside tokens.
        stop = ["umps ove", "zzz"]
        _, whole = await world.chat(max_tokens=60, stop=stop)
        events = await world.stream(max_tokens=60, stop=stop)
        stats = await world.stats()
    assert whole["choices"][0]["message"]["content"] == text[: at + 1]
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert whole["choices"][0]["stop_reason"] == "umps ove"
    assert text_of(events) == text[: at + 1]
    assert events[-1]["choices"][0]["stop_reason"] == "umps ove"
    assert events[-1]["choices"][0]["finish_reason"] == "stop"
    assert whole["usage"]["completion_tokens"] < 60
    assert (stats.running, stats.kv_blocks_used) == (0, 0)


async def test_what_was_held_back_appears_when_no_stop_comes() -> None:
    async with head_world() as world:
        _, free = await world.chat(max_tokens=12)
        text = free["choices"][0]["message"]["content"]
        _, held = await world.chat(max_tokens=12, stop=text[-3:] + "\0never")
    assert held["choices"][0]["message"]["content"] == text
    assert held["choices"][0]["finish_reason"] == "length"
    assert "stop_reason" not in held["choices"][0]
