"""A step counts as hung by what steps of its size took before, never by a guess."""

from engine.head.deadlines import Deadlines
from engine.head.pace import Pace

LIMITS = Deadlines(new_step=60.0, step=3.0, step_factor=10.0)


def test_a_size_never_seen_has_the_most_patience() -> None:
    pace = Pace(LIMITS)
    pace.learn(1, 0.02)
    assert pace.predict(200) is None
    assert pace.limit(200) == 60.0


def test_fast_steps_still_get_a_few_seconds() -> None:
    pace = Pace(LIMITS)
    pace.learn(1, 0.02)
    assert pace.limit(1) == 3.0


def test_slow_steps_get_a_multiple_of_their_time_and_it_follows_them() -> None:
    pace = Pace(LIMITS)
    pace.learn(256, 1.0)
    assert pace.limit(300) == 10.0
    for _ in range(50):
        pace.learn(256, 2.0)
    assert 19.0 < pace.limit(256) <= 20.0
