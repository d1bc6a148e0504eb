"""A grammar that turns out to leave no token to draw is the request's fault, and no other's."""

from tests.engine.head_world import head_world

WHY = "The grammar cannot be followed: it never ends."


async def test_an_answer_that_cannot_be_drawn_is_a_400_with_the_reason() -> None:
    async with head_world() as world:
        for fake in world.ranks:
            fake.mirror.reasons[1] = WHY  # the sequence after the rehearsal's
        status, body = await world.chat()
        assert (status, body["error"]["code"]) == (400, "impossible_form")
        assert body["error"]["message"] == WHY
        assert body["error"]["type"] == "invalid_request_error"
        assert (await world.chat())[0] == 200


async def test_a_stream_of_it_ends_with_the_same_error() -> None:
    async with head_world() as world:
        for fake in world.ranks:
            fake.mirror.reasons[1] = WHY
        events = await world.stream()
        assert events[-1]["error"]["code"] == "impossible_form"
        assert world.engine.scheduler.pool.used == 0


async def test_numbers_that_are_not_finite_stay_the_engines_fault() -> None:
    async with head_world() as world:
        for fake in world.ranks:
            fake.mirror.poisoned.add(1)
        status, body = await world.chat()
        assert (status, body["error"]["code"]) == (500, "engine_error")
