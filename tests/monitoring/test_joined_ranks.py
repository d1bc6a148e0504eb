"""A rank is told of by two nodes, its own and its head's: whoever looks at it sees both."""

from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async

from monitoring.live.frames import CheckedLayout
from monitoring.live.spots import Spot, joined
from monitoring.metrics import PROCESS_MEMORY, STEP_SECONDS
from monitoring.samples import measured
from monitoring.scopes import Subject
from monitoring.storage.series import latest
from tests.monitoring.cast import make_node, now, send

RANK = "launch:abc:rank1"
STEP = ("step_seconds", "seconds", "engine head", "measured", "engine", "", "")
HELD = ("process_memory_bytes", "bytes", "process", "measured", "process", "", "")


def spot(node: int, field: tuple[str, str, str, str, str, str, str], at: float) -> Spot:
    return Spot(node, RANK, CheckedLayout(RANK, (field,), (0,)), at, (float(node),))


def test_what_two_nodes_tell_now_is_one_reading() -> None:
    both = joined([spot(2, HELD, 100.4), spot(1, STEP, 100.0)])
    assert (both.layout.fields, both.numbers, both.at) == ((STEP, HELD), (1.0, 2.0), 100.4)


def test_its_layout_stays_the_same_from_second_to_second() -> None:
    first = joined([spot(1, STEP, 100.0), spot(2, HELD, 100.4)])
    second = joined([spot(2, HELD, 101.4), spot(1, STEP, 101.0)])
    assert first.layout is second.layout


def test_what_one_of_them_told_long_ago_is_not_told_as_of_now() -> None:
    only = joined([spot(1, STEP, 100.0), spot(2, HELD, 90.0)])
    assert only.layout.fields == (STEP,)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_connection_left", "nothing_live_left")
async def test_the_newest_reading_of_a_rank_holds_what_both_stored() -> None:
    nodes = [await sync_to_async(make_node)(name) for name in ("box-1", "box-2")]
    at = now()
    step = measured(STEP_SECONDS, 0.02, source="head", scope="engine", subject=RANK)
    held = measured(PROCESS_MEMORY, 9e8, source="process", scope="process", subject=RANK)
    await send(nodes[0].pk, 1, at, [step])
    await send(nodes[1].pk, 1, at + 0.3, [held])
    told = (await sync_to_async(latest)([Subject(RANK, "rank 1")], timedelta(seconds=60)))[RANK]
    assert {field[0] for field in told.fields} == {"step_seconds", "process_memory_bytes"}
    assert sorted(number for number in told.numbers if number) == [0.02, 9e8]
    assert told.at == datetime.fromtimestamp(at + 0.3, UTC)
