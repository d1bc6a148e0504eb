"""Which of two versions is newer is told where it can be, and not guessed otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.firmware.versions import Order, compare

NUMBERS = st.lists(st.integers(0, 99), min_size=1, max_size=5)
OPPOSITE = {
    Order.NEWER: Order.OLDER,
    Order.OLDER: Order.NEWER,
    Order.SAME: Order.SAME,
    Order.UNKNOWN: Order.UNKNOWN,
}


@pytest.mark.parametrize(
    ("version", "other", "order"),
    [
        ("1.10.0", "1.9.0", Order.NEWER),
        ("v2.0", "1.9", Order.NEWER),
        ("1.2", "1.2.1", Order.OLDER),
        ("1.2.0", "1.2", Order.SAME),
        ("97.00.5F.00.01", "97.00.5E.00.01", Order.NEWER),
        ("97.00.6A.00.01", "97.00.59.00.01", Order.NEWER),
        ("HGX-22.10-1-rc68", "HGX-22.10-1-rc67", Order.UNKNOWN),
        ("HGX-22.11-1", "HGX-22.10-1", Order.NEWER),
        ("DGX-1.0", "HGX-1.1", Order.UNKNOWN),
        ("1.2-rc1", "1.2", Order.UNKNOWN),
        ("1.0a", "1.10", Order.UNKNOWN),
        ("", "1.0", Order.UNKNOWN),
        ("1.0", "", Order.UNKNOWN),
        ("²", "1", Order.UNKNOWN),
    ],
)
def test_what_is_told(version: str, other: str, order: Order) -> None:
    assert compare(version, other) is order
    assert compare(other, version) is OPPOSITE[order]


@given(NUMBERS, NUMBERS)
def test_numbers_count_as_numbers(left: list[int], right: list[int]) -> None:
    found = compare(".".join(map(str, left)), ".".join(map(str, right)))
    width = max(len(left), len(right))
    mine, others = (one + [0] * (width - len(one)) for one in (left, right))
    expected = Order.SAME if mine == others else (Order.NEWER if mine > others else Order.OLDER)
    assert found is expected


@given(st.text(max_size=20), st.text(max_size=20))
def test_nothing_is_newer_both_ways(left: str, right: str) -> None:
    assert compare(left, right) is OPPOSITE[compare(right, left)]
