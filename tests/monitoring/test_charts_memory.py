"""The memory bar: its parts make up the whole, and what nobody knows is shown as unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.charts.memory import (
    UNKNOWN,
    Amount,
    Bar,
    Device,
    Held,
    Host,
    device_bar,
    host_bar,
    unknown,
)

GIB = 2.0**30


def gib(number: float, kind: str = "measured") -> Amount:
    return Amount(number * GIB, kind)  # type: ignore[arg-type]


def figures(bar: Bar) -> dict[str, float | None]:
    return {
        p.name: None if p.amount.bytes is None else round(p.amount.bytes / GIB, 6)
        for p in bar.parts
    }


HOST = Host(gib(128), gib(40), gib(10), gib(4, "declared"))
RANK = Held(gib(60), gib(16), gib(80))


def test_one_bar_holds_weights_cache_and_all_the_rest() -> None:
    assert figures(host_bar(HOST, [RANK])) == {
        "weights": 60,
        "kv": 16,
        "runtime": 4,
        "other": 8,
        "page_cache": 10,
        "free": 26,
        "floor": 4,
    }


def test_each_part_says_how_it_is_known() -> None:
    kinds = {part.name: part.amount.kind for part in host_bar(HOST, [RANK]).parts}
    assert kinds["weights"] == "measured"
    assert kinds["runtime"] == kinds["other"] == "derived"
    assert kinds["floor"] == "declared"


def test_a_box_without_ranks_has_no_part_for_them() -> None:
    assert set(figures(host_bar(HOST, []))) == {"other", "page_cache", "free", "floor"}


def test_unknown_weights_are_unknown_and_not_given_to_the_rest() -> None:
    silent = Held(unknown("The rank is loading."), gib(16), gib(80))
    bar = host_bar(HOST, [silent])
    parts = figures(bar)
    assert parts["weights"] is None
    assert parts["runtime"] is None
    assert (parts["kv"], parts["undivided"], parts["other"]) == (16, 64, 8)
    assert {part.amount.reason for part in bar.unknown if part.name == "weights"} == {
        "The rank is loading."
    }


def test_without_the_processes_the_rest_cannot_be_told_apart() -> None:
    parts = figures(host_bar(HOST, [Held(gib(60), gib(16), UNKNOWN)]))
    assert (parts["weights"], parts["kv"], parts["undivided"]) == (60, 16, 12)
    assert parts["runtime"] is parts["other"] is None


def test_a_cache_that_was_not_touched_yet_is_not_in_memory() -> None:
    bar = host_bar(HOST, [Held(gib(60), gib(16), gib(70))])
    parts = figures(bar)
    assert (parts["weights"], parts["kv"], parts["other"]) == (60, 10, 18)
    assert parts["runtime"] is None
    assert [part.amount.kind for part in bar.parts[:2]] == ["measured", "estimated"]


def test_a_silent_box_has_nothing_but_reasons() -> None:
    bar = host_bar(Host(), [RANK])
    assert not bar.total.known
    assert all(part.amount.reason for part in bar.unknown)
    assert all(part.amount.bytes is None for part in bar.parts)


def test_memory_of_several_devices_is_one_bar() -> None:
    half = Held(gib(30), gib(16), gib(50))
    bar = device_bar([Device(gib(80), gib(60)), Device(gib(80), gib(61))], [half, half])
    assert figures(bar) == {"weights": 60, "kv": 32, "runtime": 8, "other": 21, "free": 39}


def test_parts_that_share_pages_are_told_as_estimates_within_what_is_used() -> None:
    bar = device_bar([Device(gib(80), gib(35))], [Held(gib(60), gib(10), gib(80))])
    parts = figures(bar)
    assert (parts["weights"], parts["kv"], parts["other"], parts["free"]) == (30, 5, 0, 45)
    assert bar.parts[0].amount.kind == "estimated"


def test_one_unreadable_device_makes_the_sum_unknown() -> None:
    bar = device_bar([Device(gib(80), gib(60)), Device(gib(80), unknown("Lost."))], [])
    assert figures(bar) == {"other": None}


amounts = st.one_of(
    st.just(UNKNOWN), st.floats(0, 2**40).map(lambda number: Amount(number, "measured"))
)
ranks = st.lists(st.builds(Held, amounts, amounts, amounts), max_size=4)


@given(st.builds(Host, amounts, amounts, amounts, amounts), ranks)
def test_known_parts_never_exceed_the_whole_and_never_fall_below_nothing(
    host: Host, held: list[Held]
) -> None:
    bar = host_bar(host, held)
    known = [part.amount.bytes for part in bar.parts if part.amount.bytes is not None]
    assert all(number >= 0 for number in known)
    if host.total.bytes is not None and host.available.bytes is not None:
        assert sum(known) == pytest.approx(host.total.bytes, rel=1e-6, abs=1.0)
    for part in bar.parts:
        assert part.amount.known or part.amount.reason


@given(st.lists(st.builds(Device, amounts, amounts), min_size=1, max_size=8), ranks)
def test_what_is_not_known_is_never_a_zero(devices: list[Device], held: list[Held]) -> None:
    bar = device_bar(devices, held)
    if any(not d.used.known or not d.total.known for d in devices):
        assert not any(part.amount.known for part in bar.parts)
