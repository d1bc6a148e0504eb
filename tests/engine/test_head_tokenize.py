"""How long a chat is can be asked without an answer."""

from tests.engine.head_world import ASK, head_world


async def test_a_chat_is_as_long_as_its_answer_says() -> None:
    async with head_world() as world:
        status, told = await world.post("/tokenize", **ASK)
        _, answer = await world.chat()
        refused, error = await world.post("/tokenize", messages=[])
        stats = await world.stats()
    assert status == 200
    assert told["count"] == answer["usage"]["prompt_tokens"]
    assert told["max_model_len"] > told["count"]
    assert refused == 400
    assert error["error"]["param"] == "messages"
    assert stats.running == 0
