"""Accelerators: whether there is one. Readings need a vendor library."""

from collections.abc import Sequence
from pathlib import Path

from monitoring.metrics import GPU_UTILIZATION, Metric
from monitoring.samples import Sample, Scope, gettext_noop, unavailable

DEVICES = ("nvidia0", "kfd", "davinci0")
"""NVIDIA, AMD and Ascend device nodes."""


class GpuProbe:
    name = "accelerator: /dev"
    scope: Scope = "accelerator"
    metrics: Sequence[Metric] = (GPU_UTILIZATION,)

    def __init__(self, devices: Path = Path("/dev")) -> None:
        self._devices = devices

    def read(self) -> list[Sample]:
        found = any((self._devices / name).exists() for name in DEVICES)
        reason = (
            gettext_noop("Accelerator readings come with the telemetry release.")
            if found
            else gettext_noop("No supported accelerator was found.")
        )
        return [unavailable(GPU_UTILIZATION, reason, source=self.name, scope=self.scope)]
