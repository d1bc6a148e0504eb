"""What a node reads from itself, put together."""

from collections.abc import Mapping
from pathlib import Path

from monitoring.probes.accelerators import Accelerators
from monitoring.probes.base import ProbeRunner
from monitoring.probes.host import CpuProbe, DiskProbe, FloorProbe, MemoryProbe, NetworkProbe
from monitoring.probes.links import LinkProbe
from monitoring.probes.power import RaplProbe
from monitoring.probes.process import ProcessProbe
from monitoring.probes.roots import Roots
from monitoring.probes.sensors import BoardPowerProbe, ThermalProbe
from monitoring.probes.xids import Xids
from monitoring.samples import Sample


class NodeProbes:
    """What the probes ask back is set by the event loop before each reading, and only read by
    their threads."""

    def __init__(self, folder: Path, roots: Roots | None = None) -> None:
        """`folder`: where the agent keeps its state; the space left beside it is told."""
        self.roots = roots = roots or Roots()
        self.targets: Mapping[str, int] = {}
        """Subject -> pid of what works for it."""
        self.floor: int | None = None
        """Bytes that engines leave free; None while none runs."""
        self.serving = False
        """Whether an engine has answers in the making."""
        self.xids = Xids()
        self.links = LinkProbe(roots)
        self.accelerators = Accelerators(roots, lambda: self.serving, self.xids)
        self._runner = ProbeRunner(
            [
                CpuProbe(),
                MemoryProbe(),
                FloorProbe(lambda: self.floor),
                DiskProbe(folder),
                NetworkProbe(),
                ThermalProbe(roots),
                BoardPowerProbe(roots),
                RaplProbe(roots.powercap),
                self.links,
                ProcessProbe(lambda: self.targets),
                *self.accelerators.probes,
            ]
        )

    def read(self) -> list[Sample]:
        """Blocks for less than a second; from one thread at a time."""
        return self._runner.read()

    def close(self) -> None:
        self._runner.close()
