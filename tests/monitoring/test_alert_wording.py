"""Amounts and places as people read them."""

import pytest

from monitoring.alerts.wording import amount, lasting, place


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.953, "ratio", "95.3 %"),
        (1.0, "ratio", "100 %"),
        (3.1e9, "bytes", "2.89 GiB"),
        (2**29, "bytes", "0.5 GiB"),
        (5 * 2**20, "bytes", "5 MiB"),
        (0.25, "seconds", "250 ms"),
        (0.0, "seconds", "0 s"),
        (61.0, "seconds", "61 s"),
        (1.5, "times", "1.5 ×"),
        (35.25, "celsius", "35.2 °C"),
        (2e11, "bits/s", "200 Gbit/s"),
        (45.0, "dB(A)", "45 dB(A)"),
        (12.5, "EUR", "12.5 EUR"),
        (1234.0, "rpm", "1234 rpm"),
    ],
)
def test_an_amount_is_told_in_the_unit_that_people_use(value: float, unit: str, text: str) -> None:
    assert amount(value, unit).replace(",", "") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (45, "45 s"), (90, "90 s"), (300, "5 min"), (3600, "60 min"), (86_400, "24 h")],
)
def test_a_duration_is_told_in_whole_units(seconds: int, text: str) -> None:
    assert lasting(seconds) == text


@pytest.mark.parametrize(
    ("topic", "where"),
    [
        ("3/node", "box-1"),
        ("3/gpu:1", "accelerator 1 · box-1"),
        ("launch:abc", "chat"),
        ("launch:abc:rank1", "rank 1 · box-1"),
        ("", "box-1"),
    ],
)
def test_a_place_is_told_as_pages_name_it(topic: str, where: str) -> None:
    assert place(topic, "box-1", "chat") == where


def test_what_has_no_place_is_the_fleets() -> None:
    assert place("", "", "") == "The fleet"
