"""Accelerators of every vendor: which are probed, and what they are."""

import logging
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from monitoring.metrics import GPU_UTILIZATION, Metric
from monitoring.probes.base import Probe
from monitoring.probes.devices import (
    Device,
    Numbering,
    Unreadable,
    Vendor,
    has_intel_graphics,
    vendors_present,
)
from monitoring.probes.roots import Roots
from monitoring.probes.xids import Xids
from monitoring.samples import Sample, Scope, gettext_noop, unavailable

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
"""A driver may be loaded after the agent was started."""
NONE_FOUND = gettext_noop("No supported accelerator was found.")


class Reader(Protocol):
    """One vendor's devices; called from one thread."""

    def devices(self) -> list[Device]:
        """Those known so far, lost ones included."""

    def read(self) -> list[Sample]:
        """Raises Unreadable as long as no device was ever seen."""


class AcceleratorProbe:
    """One vendor. Tells nothing while none of its devices is here; loads what reads them when the
    first one is."""

    scope: Scope = "accelerator"
    metrics: Sequence[Metric] = (GPU_UTILIZATION,)

    def __init__(
        self, vendor: Vendor, present: Callable[[], bool], load: Callable[[], Reader]
    ) -> None:
        self.name = f"accelerator: {vendor}"
        self.devices: list[Device] = []
        """As of the last reading; for any thread."""
        self._present = present
        self._load = load
        self._reader: Reader | None = None
        self._complained_of = ""
        self._one_at_a_time = threading.Lock()
        """The first look may still be under way when the probes begin."""
        self._due = 0.0

    def read(self) -> list[Sample]:
        with self._one_at_a_time:
            return self._read()

    def _read(self) -> list[Sample]:
        if self._reader is None and not self._appeared():
            return []
        reader = self._reader = self._reader or self._load()
        try:
            samples = reader.read()
        except Unreadable as error:
            self._complain(error)
            return [unavailable(GPU_UTILIZATION, error.reason, source=self.name, scope=self.scope)]
        self.devices = reader.devices()
        self._complained_of = ""
        return samples

    def _complain(self, error: Unreadable) -> None:
        """Once, not every second."""
        words = f"{error.reason} {error.__cause__ or ''}".strip()
        if words != self._complained_of:
            log.warning("Reading %s failed: %s", self.name, words)
            self._complained_of = words

    def _appeared(self) -> bool:
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + LOOK_SECONDS
        return self._present()


class AbsenceProbe:
    """Says that there is no accelerator, as long as that is so."""

    name = "accelerator: /dev"
    scope: Scope = "accelerator"
    metrics: Sequence[Metric] = (GPU_UTILIZATION,)

    def __init__(self, present: Callable[[], bool]) -> None:
        self._present = present
        self._due = 0.0
        self._absent = True

    def read(self) -> list[Sample]:
        now = time.monotonic()
        if now >= self._due:
            self._due, self._absent = now + LOOK_SECONDS, not self._present()
        if not self._absent:
            return []
        return [unavailable(GPU_UTILIZATION, NONE_FOUND, source=self.name, scope=self.scope)]


class Accelerators:
    """All of this machine. `serving` says whether an engine has answers in the making."""

    def __init__(
        self,
        roots: Roots | None = None,
        serving: Callable[[], bool] = lambda: False,
        xids: Xids | None = None,
    ) -> None:
        self._roots = roots or Roots()
        self._serving = serving
        self._xids = xids or Xids()
        self._numbering = Numbering()
        loaders: dict[Vendor, Callable[[], Reader]] = {
            "nvidia": self._nvidia,
            "amd": self._amd,
            "ascend": self._ascend,
            "intel": self._intel,
        }
        self._vendors = [
            AcceleratorProbe(vendor, self._look_for(vendor), load)
            for vendor, load in loaders.items()
        ]

    @property
    def probes(self) -> list[Probe]:
        return [*self._vendors, AbsenceProbe(lambda: any(map(self._is_here, _VENDORS)))]

    @property
    def devices(self) -> list[Device]:
        """Those seen so far, by their numbers."""
        found = [device for vendor in self._vendors for device in vendor.devices]
        return sorted(found, key=lambda device: device.index)

    def discover(self, patience: float) -> list[Device]:
        """Look once, vendor by vendor, so that numbers do not depend on who is faster. Call it
        before the probes run; a driver that hangs costs `patience` and its devices."""
        ends = time.monotonic() + patience
        for vendor in self._vendors:
            looking = threading.Thread(target=vendor.read, name=vendor.name, daemon=True)
            looking.start()
            looking.join(max(0.0, ends - time.monotonic()))
            if looking.is_alive():
                log.warning("%s does not answer; it is asked again later.", vendor.name)
        return self.devices

    def _look_for(self, vendor: Vendor) -> Callable[[], bool]:
        return lambda: self._is_here(vendor)

    def _is_here(self, vendor: Vendor) -> bool:
        if vendor == "intel":
            tool = shutil.which("xpu-smi") is not None
            return tool and has_intel_graphics(self._roots.sysfs, self._roots.dev)
        return vendor in vendors_present(self._roots.dev)

    def _nvidia(self) -> Reader:
        from monitoring.probes.nvidia.reader import NvidiaReader

        return NvidiaReader(self._numbering, self._serving, self._xids)

    def _amd(self) -> Reader:
        from monitoring.probes.amd import AmdReader

        return AmdReader(self._numbering)

    def _ascend(self) -> Reader:
        from monitoring.probes.ascend import AscendReader

        return AscendReader(self._numbering)

    def _intel(self) -> Reader:
        from monitoring.probes.intel import IntelReader

        return IntelReader(self._numbering)


_VENDORS: tuple[Vendor, ...] = ("nvidia", "amd", "ascend", "intel")
