"""What becomes one incident, and what a silence covers."""

from datetime import UTC, datetime, timedelta

from monitoring.alerts.grouping import Cover, Open, Place, covered, home

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
BOX, OTHER_BOX, ENGINE = Place(node=1), Place(node=2), Place(deployment=7)
RUNS_ON = {7: frozenset({1})}


def incident(place: Place, minutes: float = 1, closed: float | None = None) -> Open:
    ended = None if closed is None else NOW - timedelta(minutes=closed)
    return Open(5, place, NOW - timedelta(minutes=minutes), ended)


def test_all_of_one_box_is_one_incident() -> None:
    assert home(BOX, [incident(BOX, 600)], RUNS_ON, NOW) == 5


def test_another_box_is_another_incident() -> None:
    assert home(OTHER_BOX, [incident(BOX)], RUNS_ON, NOW) is None


def test_what_a_dead_box_takes_with_it_belongs_to_it() -> None:
    assert home(ENGINE, [incident(BOX)], RUNS_ON, NOW) == 5
    assert home(BOX, [incident(ENGINE)], RUNS_ON, NOW) == 5


def test_trouble_of_an_engine_hours_later_is_its_own() -> None:
    assert home(ENGINE, [incident(BOX, 120)], RUNS_ON, NOW) is None


def test_an_engine_on_another_box_is_not_concerned() -> None:
    assert home(ENGINE, [incident(OTHER_BOX)], RUNS_ON, NOW) is None


def test_a_rank_belongs_to_its_box_and_to_its_deployment() -> None:
    rank = Place(node=1, deployment=7)
    assert home(rank, [incident(BOX, 600)], RUNS_ON, NOW) == 5
    assert home(rank, [incident(ENGINE, 600)], RUNS_ON, NOW) == 5


def test_the_fleet_is_a_place_too() -> None:
    assert home(Place(), [incident(Place(), 600)], {}, NOW) == 5
    assert home(Place(), [incident(BOX)], {}, NOW) is None


def test_what_fires_again_soon_goes_on_with_its_incident() -> None:
    assert home(BOX, [incident(BOX, 60, closed=5)], RUNS_ON, NOW) == 5
    assert home(BOX, [incident(BOX, 60, closed=11)], RUNS_ON, NOW) is None


def test_a_silence_covers_what_matches_all_of_it() -> None:
    assert covered(3, BOX, [Cover(rule=3, node=1)], RUNS_ON)
    assert not covered(4, BOX, [Cover(rule=3, node=1)], RUNS_ON)
    assert not covered(3, OTHER_BOX, [Cover(rule=3, node=1)], RUNS_ON)
    assert covered(4, OTHER_BOX, [Cover()], RUNS_ON)


def test_work_on_a_box_covers_the_engines_that_run_there() -> None:
    assert covered(3, ENGINE, [Cover(node=1)], RUNS_ON)
    assert not covered(3, ENGINE, [Cover(node=2)], RUNS_ON)


def test_work_on_an_engine_does_not_cover_its_box() -> None:
    assert not covered(3, BOX, [Cover(deployment=7)], RUNS_ON)
