"""Sound levels: the ear's curve, energies instead of numbers, the fan law."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.noise import (
    a_weighting_db,
    effective_rpm,
    energetic_mean,
    energetic_sum,
    fan_law,
    level_dbfs,
    without_background,
)

RATE = 48_000
LEVELS = st.lists(st.floats(10, 130), min_size=1, max_size=8)
SPEEDS = st.lists(st.floats(300, 20_000), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("hertz", "decibels"),
    [(31.5, -39.5), (63, -26.2), (100, -19.14), (1000, 0.0), (4000, 0.96), (8000, -1.1)],
)
def test_the_curve_is_that_of_the_standard(hertz: float, decibels: float) -> None:
    assert a_weighting_db(hertz) == pytest.approx(decibels, abs=0.06)


@pytest.mark.parametrize("hertz", [100, 1000, 4000])
def test_a_tone_of_94_db_is_94_db_less_what_the_ear_loses(hertz: int) -> None:
    full_scale = 120.0
    time = np.arange(RATE) / RATE
    tone = math.sqrt(2) * 10 ** ((94 - full_scale) / 20) * np.sin(2 * np.pi * hertz * time)
    heard = level_dbfs(tone, RATE) + full_scale
    assert heard == pytest.approx(94 + a_weighting_db(hertz), abs=0.02)


def test_silence_has_no_level() -> None:
    assert level_dbfs(np.zeros(RATE), RATE) == -math.inf


def test_six_fans_at_three_speeds() -> None:
    together = energetic_sum([62.0] * 6)
    assert together == pytest.approx(69.8, abs=0.05)
    assert fan_law(together, 8000, 4000) == pytest.approx(54.7, abs=0.05)
    assert fan_law(together, 8000, 12000) == pytest.approx(together + 8.8, abs=0.05)


def test_two_equal_sources_are_three_decibels_louder() -> None:
    assert energetic_sum([40, 40]) == pytest.approx(43.01, abs=0.01)


def test_a_mean_is_of_energies_and_not_of_numbers() -> None:
    assert energetic_mean([40, 60]) == pytest.approx(57.03, abs=0.01)


def test_a_background_is_taken_away_only_where_it_can_be() -> None:
    assert without_background(45, 40) == pytest.approx(43.35, abs=0.01)
    assert without_background(42, 40) is None
    assert without_background(40, 45) is None


@given(LEVELS)
def test_a_mean_lies_between_the_quietest_and_the_loudest(levels: list[float]) -> None:
    mean = energetic_mean(levels)
    assert min(levels) - 1e-6 <= mean <= max(levels) + 1e-6
    assert mean >= sum(levels) / len(levels) - 1e-6


@given(LEVELS, st.floats(10, 130))
def test_another_source_never_makes_it_quieter(levels: list[float], other: float) -> None:
    assert energetic_sum([*levels, other]) >= max(energetic_sum(levels), other)


@given(SPEEDS, st.floats(45, 60), st.floats(1000, 10_000))
def test_one_effective_speed_stands_for_fans_at_many(
    speeds: list[float], exponent: float, reference: float
) -> None:
    single = [fan_law(50.0, reference, rpm, exponent) for rpm in speeds]
    together = energetic_sum(single)
    effective = effective_rpm(speeds, exponent)
    level_of_all = 50.0 + 10 * math.log10(len(speeds))
    assert fan_law(level_of_all, reference, effective, exponent) == pytest.approx(together)


@given(st.floats(30, 90), st.floats(500, 15_000), st.floats(500, 15_000), st.floats(40, 60))
def test_the_fan_law_can_be_turned_round(
    level: float, there: float, here: float, exponent: float
) -> None:
    back = fan_law(fan_law(level, there, here, exponent), here, there, exponent)
    assert back == pytest.approx(level)
