"""A deployment leaves a node in the way that costs least, and never by falling silent."""

from hypothesis import given
from hypothesis import strategies as some

from dashboard.ways_off import Held, Way, way_off

launches = some.lists(
    some.builds(Held, fallback=some.booleans(), here=some.booleans(), ready=some.booleans()),
    max_size=6,
)


def test_what_has_nothing_there_stays() -> None:
    assert way_off([Held()], room=False, fallback=False) == Way.NOTHING
    assert way_off([], room=True, fallback=True) == Way.NOTHING


def test_another_replica_makes_a_copy_needless() -> None:
    assert way_off([Held(here=True), Held()], room=True, fallback=True) == Way.SHED


def test_a_replica_that_does_not_answer_is_no_help() -> None:
    other = Held(ready=False)
    assert way_off([Held(here=True), other], room=True, fallback=False) == Way.COPY


def test_the_fallback_is_for_when_a_copy_has_no_room() -> None:
    assert way_off([Held(here=True)], room=False, fallback=True) == Way.FALLBACK


def test_an_idle_fallback_is_simply_started_elsewhere() -> None:
    assert way_off([Held(), Held(fallback=True, here=True)], room=True, fallback=True) == Way.AGAIN


@given(launches, some.booleans(), some.booleans())
def test_nothing_leaves_without_somebody_to_answer(
    there: list[Held], room: bool, fallback: bool
) -> None:
    way = way_off(there, room=room, fallback=fallback)
    if way == Way.SHED:
        assert any(one.ready and not one.here and not one.fallback for one in there)
    if way == Way.COPY:
        assert room
    if way == Way.FALLBACK:
        assert fallback
    if any(one.here for one in there):
        assert way != Way.NOTHING
