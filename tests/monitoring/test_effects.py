"""What quiet hours did is told once there is enough on both sides, of the same weekdays."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from monitoring.accounts.effects import NEVER_HELD, TOO_FEW, effect, pooled
from monitoring.noise import energetic_mean

ZONE = ZoneInfo("UTC")
FRIDAY = datetime(2026, 11, 27, tzinfo=UTC).timestamp()
HOUR = 3600.0
NIGHT = (FRIDAY + 22 * HOUR, FRIDAY + 30 * HOUR)


def minutes(begin: float, count: int, value: float) -> list[tuple[float, float]]:
    return [(begin + 60 * index, value) for index in range(count)]


def test_medians_while_held_back_stand_beside_those_of_the_same_weekdays() -> None:
    points = minutes(FRIDAY + 12 * HOUR, 40, 50.0) + minutes(NIGHT[0], 30, 30.0)
    found = effect(points, [NIGHT], ZONE)
    assert (found.during, found.outside) == (30.0, 50.0)
    assert (found.minutes_during, found.minutes_outside) == (30, 40)
    assert found.change == -20.0
    assert found.ratio == -0.4


def test_other_weekdays_do_not_count() -> None:
    sunday = minutes(FRIDAY + 60 * HOUR, 100, 99.0)
    points = minutes(FRIDAY + 12 * HOUR, 40, 50.0) + minutes(NIGHT[0], 30, 30.0) + sunday
    assert effect(points, [NIGHT], ZONE).outside == 50.0


def test_too_few_minutes_on_either_side_are_said_and_not_guessed_from() -> None:
    points = minutes(FRIDAY, 300, 50.0) + minutes(NIGHT[0], 29, 30.0)
    found = effect(points, [NIGHT], ZONE)
    assert (found.during, found.outside, found.change, found.ratio) == (None,) * 4
    assert (found.minutes_during, found.reason) == (29, TOO_FEW)
    assert effect(points, [], ZONE).reason == NEVER_HELD


def test_sound_is_averaged_by_its_energy() -> None:
    loud = minutes(FRIDAY + 12 * HOUR, 30, 60.0) + minutes(FRIDAY + 13 * HOUR, 30, 50.0)
    points = loud + minutes(NIGHT[0], 30, 40.0)
    found = effect(points, [NIGHT], ZONE, fold=energetic_mean)
    assert found.during == pytest.approx(40.0)
    assert found.outside == pytest.approx(57.404, abs=1e-3)


def test_several_engines_are_put_in_one_order() -> None:
    assert pooled([[(3.0, 1.0)], [(1.0, 2.0), (5.0, 3.0)]]) == [(1.0, 2.0), (3.0, 1.0), (5.0, 3.0)]
