"""A probe that fails or hangs costs its own values, and says why."""

import logging
import threading
from collections.abc import Iterator, Sequence

import pytest

from monitoring.metrics import FAN_SPEED, POWER, TEMPERATURE, Metric
from monitoring.probes.base import ProbeRunner
from monitoring.probes.host import MemoryProbe
from monitoring.samples import Sample, Scope, measured, unavailable

LATE = "It did not answer within a second."


class BrokenProbe:
    name = "broken meter"
    scope: Scope = "wall"
    metrics: Sequence[Metric] = (POWER, TEMPERATURE)

    def __init__(self, error: Exception) -> None:
        self.error = error

    def read(self) -> list[Sample]:
        raise self.error


class SlowProbe:
    """Answers when it is let; every answer is another number."""

    name = "slow meter"
    scope: Scope = "host"
    metrics: Sequence[Metric] = (FAN_SPEED,)

    def __init__(self) -> None:
        self.let = threading.Semaphore(1)
        self.done = threading.Semaphore(0)
        self.count = 0

    def read(self) -> list[Sample]:
        assert self.let.acquire(timeout=20)
        self.count += 1
        self.done.release()
        return [
            measured(FAN_SPEED, float(self.count), source="slow", scope="host", label="front"),
            unavailable(FAN_SPEED, "It stands.", source="slow", scope="host", label="rear"),
        ]


def by_label(samples: Sequence[Sample]) -> dict[str, Sample]:
    return {sample.label: sample for sample in samples if sample.metric == FAN_SPEED.name}


@pytest.fixture
def slow() -> Iterator[SlowProbe]:
    probe = SlowProbe()
    yield probe
    probe.let.release(5)


def test_the_others_are_read_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    runner = ProbeRunner([BrokenProbe(OSError("device gone")), MemoryProbe()], deadline=20)
    for _ in range(3):
        samples = runner.read()
    runner.close()
    values = {sample.metric: sample for sample in samples}
    assert values["memory_total_bytes"].value
    assert values["power_watts"].kind == "unavailable"
    assert values["power_watts"].reason == "Reading it failed; the agent's log says why."
    assert values["temperature_celsius"].value is None
    assert caplog.text.count("device gone") == 1, "said once, not every second"


def test_one_that_hangs_is_not_waited_for_and_what_it_had_told_is_absent(slow: SlowProbe) -> None:
    patient = ProbeRunner([slow, MemoryProbe()], deadline=20)
    assert by_label(patient.read())["front"].value == 1.0
    patient.deadline = 0.01
    for _ in range(2):
        samples = patient.read()
        front, rear = by_label(samples)["front"], by_label(samples)["rear"]
        assert (front.value, front.kind, front.reason) == (None, "unavailable", LATE)
        assert rear.reason == "It stands.", "what was absent before stays so for its own reason"
    slow.let.release()
    patient.close()


def test_a_late_answer_never_passes_for_a_new_one(slow: SlowProbe) -> None:
    runner = ProbeRunner([slow], deadline=20)
    assert by_label(runner.read())["front"].value == 1.0
    runner.deadline = 0.01
    assert by_label(runner.read())["front"].value is None
    slow.let.release()
    assert slow.done.acquire(timeout=20)
    assert slow.done.acquire(timeout=20), "the second answer has come, too late"
    runner.deadline = 20
    slow.let.release(5)
    answers = [by_label(runner.read())["front"].value, by_label(runner.read())["front"].value]
    runner.close()
    assert 2.0 not in answers


def test_before_its_first_answer_what_it_answers_for_is_absent(slow: SlowProbe) -> None:
    assert slow.let.acquire(timeout=1)
    runner = ProbeRunner([slow], deadline=0.01)
    (absent,) = runner.read()
    runner.close()
    assert (absent.metric, absent.label, absent.reason) == (FAN_SPEED.name, "", LATE)


def test_a_mistake_in_a_probe_is_not_swallowed() -> None:
    runner = ProbeRunner([BrokenProbe(ZeroDivisionError())], deadline=20)
    with pytest.raises(ZeroDivisionError):
        runner.read()
    runner.close()
