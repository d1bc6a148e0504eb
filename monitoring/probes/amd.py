"""AMD devices, through the library that comes with ROCm (`amdsmi`), where it is installed.

It must be that of the installed ROCm, so it is no dependency. For what a device does not have it
answers the text "N/A", or a number with all bits set; neither is a value.
"""

import importlib
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from monitoring.metrics import (
    ENERGY,
    FAN_SPEED,
    GPU_CLOCK,
    GPU_ECC_ERRORS,
    GPU_FAN,
    GPU_MEMORY_HEADROOM,
    GPU_MEMORY_TOTAL,
    GPU_MEMORY_USED,
    GPU_POWER_LIMIT,
    GPU_TEMPERATURE,
    GPU_UTILIZATION,
    POWER,
    Metric,
)
from monitoring.probes.devices import Device, Numbering, Unreadable
from monitoring.probes.energy import Integrator, estimated_energy
from monitoring.samples import Sample, gettext_noop, measured, unavailable

MIB = 1 << 20
REOPEN_SECONDS = 60.0
ALL_BITS = {0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF}
MOST_WATTS = 100_000.0
"""A limit above it is in microwatts: releases differ."""

STUMBLES = (AttributeError, LookupError, TypeError, ValueError)
"""What the library raises of its own where it and the driver are of different releases."""

NO_LIBRARY = gettext_noop(
    "AMD's library amdsmi is not installed; it comes with ROCm and must be of the same release."
)
NO_DRIVER = gettext_noop("AMD's library cannot reach the driver; the agent's log says why.")
NOT_OFFERED = gettext_noop("This accelerator's driver does not tell it.")


def load() -> ModuleType:
    """Raises Unreadable."""
    try:
        return importlib.import_module("amdsmi")
    except (ImportError, OSError, AttributeError, KeyError) as error:
        # Without ROCm's own library, or with one of another release, it stumbles while it loads.
        raise Unreadable(NO_LIBRARY) from error


class AmdReader:
    def __init__(self, numbering: Numbering, load: Callable[[], ModuleType] = load) -> None:
        self._numbering = numbering
        self._load = load
        self._library: Any = None
        self._failure: Unreadable | None = None
        self._due = 0.0
        self._known: list[tuple[Device, object, Integrator]] = []

    def devices(self) -> list[Device]:
        return [device for device, _handle, _integrator in self._known]

    def read(self) -> list[Sample]:
        if not self._known:
            self._try_to_open()
        return [
            sample
            for device, handle, integrator in self._known
            for sample in self._samples(device, handle, integrator)
        ]

    def _try_to_open(self) -> None:
        """Not every second: it prints what it misses."""
        now = time.monotonic()
        if self._failure is not None and now < self._due:
            raise self._failure
        try:
            self._open()
        except Unreadable as error:
            self._failure, self._due = error, now + REOPEN_SECONDS
            raise

    def _open(self) -> None:
        library = self._library = self._load()
        try:
            library.amdsmi_init()
            handles = library.amdsmi_get_processor_handles()
        except library.AmdSmiException as error:
            raise Unreadable(NO_DRIVER) from error
        if not handles:
            raise Unreadable(NO_DRIVER)
        self._known = [
            (self._device(number, handle), handle, Integrator(1.0))
            for number, handle in enumerate(handles)
        ]

    def _device(self, number: int, handle: object) -> Device:
        uuid = self._ask("amdsmi_get_gpu_device_uuid", handle)
        key = uuid if isinstance(uuid, str) and uuid != "N/A" else ""
        total = self._part("amdsmi_get_gpu_vram_usage", ("vram_total",), handle)
        return Device(
            index=self._numbering.number("amd", key or str(number)),
            vendor="amd",
            name=self._word("amdsmi_get_gpu_asic_info", "market_name", handle) or "AMD",
            uuid=key,
            memory_bytes=None if total is None else int(total) * MIB,
            driver=self._word("amdsmi_get_gpu_driver_info", "driver_version", handle),
        )

    def _samples(self, device: Device, handle: object, integrator: Integrator) -> Iterator[Sample]:
        library = self._library
        busy = self._part("amdsmi_get_gpu_activity", ("gfx_activity",), handle)
        yield _tell(device, GPU_UTILIZATION, busy, "amdsmi, share of time", scale=1e-2)
        yield from self._memory(device, handle)
        yield _tell(device, GPU_TEMPERATURE, self._temperature(handle))
        yield from self._power(device, handle, integrator)
        for label, kind in (("sm", "GFX"), ("memory", "MEM")):
            clock = getattr(library.AmdSmiClkType, kind)
            hertz = self._part("amdsmi_get_clock_info", ("clk", "cur_clk"), handle, clock)
            yield _tell(device, GPU_CLOCK, hertz, label=label, scale=1e6)
        yield from self._fan(device, handle)
        for label in ("corrected", "uncorrected"):
            name = label.replace("corrected", "correctable_count")
            count = self._part("amdsmi_get_gpu_total_ecc_count", (name,), handle)
            yield _tell(device, GPU_ECC_ERRORS, count, label=label)

    def _memory(self, device: Device, handle: object) -> Iterator[Sample]:
        call = "amdsmi_get_gpu_vram_usage"
        used = self._part(call, ("vram_used",), handle)
        total = self._part(call, ("vram_total",), handle)
        left = None if used is None or total is None else total - used
        yield _tell(device, GPU_MEMORY_USED, used, scale=MIB)
        yield _tell(device, GPU_MEMORY_TOTAL, total, scale=MIB)
        yield _tell(device, GPU_MEMORY_HEADROOM, left, scale=MIB)

    def _temperature(self, handle: object) -> float | None:
        """The hottest spot where the device tells it, else the edge."""
        library = self._library
        for place in ("HOTSPOT", "EDGE"):
            sensor = getattr(library.AmdSmiTemperatureType, place)
            now = library.AmdSmiTemperatureMetric.CURRENT
            value = _number(self._ask("amdsmi_get_temp_metric", handle, sensor, now))
            if value is not None:
                return value
        return None

    def _power(self, device: Device, handle: object, integrator: Integrator) -> Iterator[Sample]:
        watts, source = None, "amdsmi"
        for name, meaning in (
            ("socket_power", "amdsmi, socket"),
            ("current_socket_power", "amdsmi, socket, instant"),
            ("average_socket_power", "amdsmi, socket, average"),
        ):
            watts = self._part("amdsmi_get_power_info", (name,), handle)
            if watts:  # A device that answers draws something: 0 is how some releases say nothing.
                source = meaning
                break
        power = _tell(device, POWER, watts or None, source)
        yield power
        count = self._part("amdsmi_get_energy_count", ("energy_accumulator", "power"), handle)
        unit = self._part("amdsmi_get_energy_count", ("counter_resolution",), handle)
        if count is None or unit is None:
            yield estimated_energy(power, integrator, source="amdsmi, power over time")
        else:
            yield _tell(device, ENERGY, count * unit, "amdsmi, energy counter", scale=1e-6)
        limit = self._part("amdsmi_get_power_cap_info", ("power_cap",), handle)
        scale = 1e-6 if limit is not None and limit > MOST_WATTS else 1.0
        yield _tell(device, GPU_POWER_LIMIT, limit, scale=scale)

    def _fan(self, device: Device, handle: object) -> Iterator[Sample]:
        speed = _number(self._ask("amdsmi_get_gpu_fan_speed", handle, 0))
        most = _number(self._ask("amdsmi_get_gpu_fan_speed_max", handle, 0))
        yield _tell(device, GPU_FAN, speed / most if speed is not None and most else None)
        rpm = _number(self._ask("amdsmi_get_gpu_fan_rpms", handle, 0))
        if rpm is not None:
            yield _tell(device, FAN_SPEED, rpm)

    def _ask(self, call: str, *arguments: object) -> object:
        """None for what cannot be told, or what this release does not have."""
        function = getattr(self._library, call, None)
        if function is None:
            return None
        try:
            return function(*arguments)
        except (self._library.AmdSmiException, *STUMBLES):
            return None

    def _part(self, call: str, names: tuple[str, ...], *arguments: object) -> float | None:
        """The first of these parts of an answer that is a number."""
        answer = self._ask(call, *arguments)
        if not isinstance(answer, dict):
            return None
        values = (_number(answer.get(name)) for name in names)
        return next((value for value in values if value is not None), None)

    def _word(self, call: str, name: str, handle: object) -> str:
        answer = self._ask(call, handle)
        word = answer.get(name) if isinstance(answer, dict) else None
        return word if isinstance(word, str) and word != "N/A" else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value in ALL_BITS:
        return None
    return float(value)


def _tell(
    device: Device,
    metric: Metric,
    value: float | None,
    source: str = "amdsmi",
    label: str = "",
    scale: float = 1.0,
) -> Sample:
    if value is None:
        return unavailable(
            metric,
            NOT_OFFERED,
            source=source,
            scope="accelerator",
            subject=device.subject,
            label=label,
        )
    return measured(
        metric,
        value * scale,
        source=source,
        scope="accelerator",
        subject=device.subject,
        label=label,
    )
