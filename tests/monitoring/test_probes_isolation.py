"""A probe that fails costs its own values, and says why."""

import logging
from collections.abc import Sequence

import pytest

from monitoring.metrics import POWER, TEMPERATURE, Metric
from monitoring.probes.base import ProbeRunner
from monitoring.probes.gpu import GpuProbe
from monitoring.probes.host import MemoryProbe
from monitoring.samples import Sample, Scope


class BrokenProbe:
    name = "broken meter"
    scope: Scope = "wall"
    metrics: Sequence[Metric] = (POWER, TEMPERATURE)

    def __init__(self, error: Exception) -> None:
        self.error = error

    def read(self) -> list[Sample]:
        raise self.error


def test_the_others_are_read_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    runner = ProbeRunner([BrokenProbe(OSError("device gone")), MemoryProbe(), GpuProbe()])
    for _ in range(3):
        samples = runner.read()
    values = {sample.metric: sample for sample in samples}
    assert values["memory_total_bytes"].value
    assert values["power_watts"].kind == "unavailable"
    assert values["power_watts"].reason == "Reading it failed; the agent's log says why."
    assert values["temperature_celsius"].value is None
    assert caplog.text.count("device gone") == 1, "said once, not every second"


def test_a_mistake_in_a_probe_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        ProbeRunner([BrokenProbe(ZeroDivisionError())]).read()
