"""Joules from watts: an estimate that never counts what nobody read."""

import math

from hypothesis import given
from hypothesis import strategies as st

from monitoring.metrics import POWER
from monitoring.probes.energy import Integrator, estimated_energy
from monitoring.samples import measured, unavailable


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_mean_of_two_readings_holds_between_them() -> None:
    clock = Clock()
    integrator = Integrator(1.0, clock)
    assert integrator.add(None) is None, "nothing is known before the first reading"
    assert integrator.add(100.0) == 0.0
    clock.now = 1.0
    assert integrator.add(200.0) == 150.0
    clock.now = 3.0
    assert integrator.add(200.0) == 550.0


def test_a_missing_reading_is_bridged_and_a_long_gap_is_not_counted() -> None:
    clock = Clock()
    integrator = Integrator(1.0, clock)
    integrator.add(100.0)
    clock.now = 1.0
    assert integrator.add(None) == 0.0
    clock.now = 2.0
    assert integrator.add(100.0) == 200.0
    clock.now = 6.0
    assert integrator.add(100.0) == 200.0, "four intervals without a word"
    clock.now = 7.0
    assert integrator.add(100.0) == 300.0


@given(st.lists(st.tuples(st.floats(0.01, 10), st.none() | st.floats(0, 1000)), max_size=60))
def test_energy_never_shrinks_and_is_never_more_than_the_peak_all_the_time(
    readings: list[tuple[float, float | None]],
) -> None:
    clock = Clock()
    integrator = Integrator(1.0, clock)
    before, peak = 0.0, max((watts or 0.0 for _step, watts in readings), default=0.0)
    for step, watts in readings:
        clock.now += step
        joules = integrator.add(watts)
        assert (joules is None) == (before == 0.0 and joules is None)
        if joules is not None:
            assert joules >= before
            before = joules
    assert before <= peak * clock.now or math.isclose(before, peak * clock.now)


def test_it_is_said_to_be_an_estimate_and_keeps_scope_and_subject() -> None:
    clock = Clock()
    integrator = Integrator(1.0, clock)
    absent = unavailable(POWER, "No meter.", source="board", scope="host")
    nothing = estimated_energy(absent, integrator, source="board, over time")
    assert (nothing.value, nothing.reason) == (None, "No meter.")
    power = measured(POWER, 50.0, source="x", scope="accelerator", subject="gpu:3")
    energy = estimated_energy(power, integrator, source="x, over time")
    assert (energy.kind, energy.scope, energy.subject) == ("estimated", "accelerator", "gpu:3")
