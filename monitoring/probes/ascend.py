"""Ascend devices, from what `npu-smi info` prints.

A chip has two lines, split by `|`; columns are not counted, because their widths differ from
release to release. "MB" are mebibytes. The second die of a card has no power of its own.
"""

import re
from collections.abc import Callable, Iterator

import msgspec

from monitoring.metrics import (
    ENERGY,
    GPU_HEALTH,
    GPU_MEMORY_HEADROOM,
    GPU_MEMORY_TOTAL,
    GPU_MEMORY_USED,
    GPU_TEMPERATURE,
    GPU_UTILIZATION,
    POWER,
    Metric,
)
from monitoring.probes.command import UNREADABLE, Polled, ToolError, run
from monitoring.probes.devices import Device, Numbering, Unreadable
from monitoring.probes.energy import Integrator, estimated_energy
from monitoring.samples import Sample, gettext_noop, measured, unavailable

SOURCE = "npu-smi info"
MIB = 1 << 20
FIRST_SECONDS = 10.0
"""For the first answer, when the agent starts."""
METRICS = (
    GPU_UTILIZATION,
    GPU_MEMORY_USED,
    GPU_MEMORY_TOTAL,
    GPU_MEMORY_HEADROOM,
    GPU_TEMPERATURE,
    POWER,
    ENERGY,
    GPU_HEALTH,
)
SECOND_DIE = gettext_noop("Its power is counted with the card's first die.")
NOT_TOLD = gettext_noop("The accelerator's tool does not tell it.")
GONE = gettext_noop("The accelerator's tool does not list the device any more.")


class Chip(msgspec.Struct, frozen=True, kw_only=True):
    card: int
    chip: int
    bus: str
    name: str
    healthy: bool | None
    watts: float | None
    celsius: float | None
    busy: float | None
    """Share, 0..1."""
    used: float | None
    """Bytes of HBM, as is the next."""
    total: float | None


class Table(msgspec.Struct, frozen=True):
    version: str
    chips: list[Chip]


def parse(text: str) -> Table:
    """Raises ToolError where no chip can be made out."""
    version = re.search(r"Version:\s*(\S+)", text)
    chips: list[Chip] = []
    first: list[str] | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 3 or not re.match(r"\d", cells[0]):
            # A list of processes follows, in cells of its own.
            if chips and re.search(r"Process id", line):
                break
            first = None
        elif first is None:
            first = cells
        else:
            chips.append(_chip(first, cells))
            first = None
    if not chips:
        raise ToolError(UNREADABLE, text[:500])
    return Table(version[1] if version else "", chips)


def _chip(first: list[str], second: list[str]) -> Chip:
    card, _space, name = first[0].partition(" ")
    usage = re.findall(r"(\d+)\s*/\s*(\d+)", second[2])
    used, total = usage[-1] if usage else ("", "")
    values, shares = first[2].split(), second[2].split()
    return Chip(
        card=int(card),
        chip=int(second[0].split()[0]),
        bus=second[1],
        name=name.strip(),
        healthy=_health(first[1]),
        watts=_number(values, 0),
        celsius=_number(values, 1),
        busy=None if (percent := _number(shares, 0)) is None else percent / 100,
        used=_scaled(used),
        total=_scaled(total),
    )


def _health(word: str) -> bool | None:
    return None if word in ("", "-", "NA", "UNKNOWN") else word == "OK"


def _number(words: list[str], index: int) -> float | None:
    try:
        return float(words[index])
    except (IndexError, ValueError):
        return None


def _scaled(digits: str) -> float | None:
    """0 in all is what a chip without HBM says."""
    return float(digits) * MIB if digits else None


class AscendReader:
    def __init__(
        self, numbering: Numbering, ask: Callable[[], str] = lambda: run(["npu-smi", "info"])
    ) -> None:
        self._numbering = numbering
        self._polled = Polled(lambda: parse(ask()))
        self._known: dict[str, tuple[Device, Integrator]] = {}
        self._dies: dict[str, int] = {}

    def devices(self) -> list[Device]:
        return [device for device, _integrator in self._known.values()]

    def read(self) -> list[Sample]:
        if not self._known:
            self._polled.wait(FIRST_SECONDS)
        try:
            table = self._polled.latest()
        except ToolError as error:
            if not self._known:
                raise Unreadable(error.reason) from error
            return [s for device in self.devices() for s in _absent(device, error.reason)]
        chips = {_key(chip): chip for chip in table.chips}
        for key, chip in chips.items():
            self._known.setdefault(key, (self._device(key, chip, table.version), Integrator(5.0)))
        return [sample for key in self._known for sample in self._samples(key, chips.get(key))]

    def _device(self, key: str, chip: Chip, version: str) -> Device:
        return Device(
            index=self._numbering.number("ascend", key),
            vendor="ascend",
            name=chip.name if chip.name.startswith("Ascend") else f"Ascend {chip.name}",
            uuid=chip.bus,
            memory_bytes=int(chip.total) if chip.total else None,
            driver=version,
        )

    def _samples(self, key: str, chip: Chip | None) -> Iterator[Sample]:
        device, integrator = self._known[key]
        if chip is None:
            yield from _absent(device, GONE)
            return
        headroom = (
            chip.total - chip.used if chip.total is not None and chip.used is not None else None
        )
        yield _tell(device, GPU_UTILIZATION, chip.busy, source=f"{SOURCE}, AI cores")
        yield _tell(device, GPU_MEMORY_USED, chip.used)
        yield _tell(device, GPU_MEMORY_TOTAL, chip.total)
        yield _tell(device, GPU_MEMORY_HEADROOM, headroom)
        yield _tell(device, GPU_TEMPERATURE, chip.celsius)
        yield _tell(device, GPU_HEALTH, None if chip.healthy is None else float(chip.healthy))
        why = SECOND_DIE if chip.chip > 0 else NOT_TOLD
        power = _tell(device, POWER, chip.watts, reason=why)
        yield power
        yield estimated_energy(power, integrator, source=f"{SOURCE}, power over time")


def _key(chip: Chip) -> str:
    return f"{chip.card}/{chip.chip}"


def _absent(device: Device, reason: str) -> list[Sample]:
    return [_tell(device, metric, None, reason=reason) for metric in METRICS]


def _tell(
    device: Device,
    metric: Metric,
    value: float | None,
    *,
    reason: str = NOT_TOLD,
    source: str = SOURCE,
) -> Sample:
    if value is None:
        return unavailable(
            metric, reason, source=source, scope="accelerator", subject=device.subject
        )
    return measured(metric, value, source=source, scope="accelerator", subject=device.subject)
