"""All NVIDIA devices of this machine: found, numbered, read, lost and found again."""

import logging
import time
from collections.abc import Callable

import msgspec
import pynvml

from monitoring.probes.devices import Device, Numbering, Unreadable
from monitoring.probes.nvidia.calls import LOST, Missing, ask
from monitoring.probes.nvidia.device import DeviceReader
from monitoring.probes.nvidia.events import FaultEvents
from monitoring.probes.nvidia.integrated import ask as ask_integrated
from monitoring.probes.xids import Place, Xids, place_of
from monitoring.samples import Sample, gettext_noop

log = logging.getLogger(__name__)

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
REOPEN_SECONDS, MOST_REOPEN_SECONDS = 10.0, 120.0
NONE_LISTED = gettext_noop("NVIDIA's driver is loaded and lists no accelerator.")
KNOWN_INTEGRATED = ("GB10", "N1X", "ORIN", "THOR", "XAVIER", "TEGRA")
"""What is decided by when the CUDA driver cannot be asked."""


class NvidiaReader:
    """Every call from one thread. What does not change while the driver is loaded is asked once."""

    def __init__(self, numbering: Numbering, serving: Callable[[], bool], xids: Xids) -> None:
        self._numbering = numbering
        self._serving = serving
        self._events = FaultEvents(xids)
        self._known: dict[str, DeviceReader] = {}
        """By UUID: those that were ever seen, for as long as this runs."""
        self._handles: dict[str, object] = {}
        self._places: dict[str, Place | None] = {}
        self._open = False
        self._unseen = False
        """There are devices, or should be, that nothing is known of yet."""
        self._due = 0.0
        self._pause = REOPEN_SECONDS
        self._failure = Missing(LOST)

    def devices(self) -> list[Device]:
        return [reader.device for reader in self._known.values()]

    def read(self) -> list[Sample]:
        if not self._open and (failure := self._try_to_open()):
            if not self._known:
                raise Unreadable(failure.reason)
            return [s for reader in self._known.values() for s in reader.absent(failure.reason)]
        self._events.gather()
        samples = [s for uuid, reader in self._known.items() for s in self._read(uuid, reader)]
        if self._unseen or any(uuid not in self._handles for uuid in self._known):
            self._reopen()
        if not self._known:
            raise Unreadable(NONE_LISTED)
        return samples

    def _read(self, uuid: str, reader: DeviceReader) -> list[Sample]:
        handle = self._handles.get(uuid)
        samples = reader.absent(LOST) if handle is None else reader.read(handle)
        if handle is not None and reader.gone:
            log.warning("%s (%s) does not answer.", reader.device.name, reader.device.subject)
            del self._handles[uuid]
        return [*samples, *self._events.samples(reader.device, self._places.get(uuid))]

    def _try_to_open(self) -> Missing | None:
        """None once it is open; else why not. Not tried more often than every ten seconds."""
        now = time.monotonic()
        if now < self._due:
            return self._failure
        self._due = now + REOPEN_SECONDS
        opened = ask(pynvml.nvmlInit)
        if isinstance(opened, Missing):
            self._failure = opened
            return opened
        self._open = True
        self._find()
        return None

    def _reopen(self) -> None:
        """A lost device may be back, or its driver loaded anew: handles are then others."""
        now = time.monotonic()
        if now < self._due:
            return
        self._events.close()
        ask(pynvml.nvmlShutdown)
        self._open = False
        self._handles.clear()
        self._try_to_open()
        # Opening is slow on a box with many devices, and costs all of them a reading.
        whole = not self._unseen and len(self._handles) == len(self._known)
        self._pause = REOPEN_SECONDS if whole else min(MOST_REOPEN_SECONDS, self._pause * 2)
        self._due = now + self._pause

    def _find(self) -> None:
        driver = ask(pynvml.nvmlSystemGetDriverVersion)
        version = "" if isinstance(driver, Missing) else str(driver)
        count = ask(pynvml.nvmlDeviceGetCount)
        self._unseen = isinstance(count, Missing) or not count
        integrated: dict[str, bool] | None = None
        for index in range(0 if isinstance(count, Missing) else count):
            handle = ask(pynvml.nvmlDeviceGetHandleByIndex, index)
            uuid = handle if isinstance(handle, Missing) else ask(pynvml.nvmlDeviceGetUUID, handle)
            if isinstance(uuid, Missing):
                self._unseen = True
                continue
            self._handles[uuid] = handle
            if known := self._known.get(uuid):
                known.device = msgspec.structs.replace(known.device, driver=version)
            else:
                integrated = integrated if integrated is not None else ask_integrated() or {}
                device = self._device(index, handle, uuid, version, integrated)
                self._known[uuid] = DeviceReader(device, self._serving)
                pci = ask(pynvml.nvmlDeviceGetPciInfo, handle)
                bus = None if isinstance(pci, Missing) else place_of(str(pci.busId))
                self._places[uuid] = bus
        self._events.register(
            {self._known[uuid].device.subject: handle for uuid, handle in self._handles.items()}
        )

    def _device(
        self, index: int, handle: object, uuid: str, driver: str, integrated: dict[str, bool]
    ) -> Device:
        name = ask(pynvml.nvmlDeviceGetName, handle)
        named = "NVIDIA" if isinstance(name, Missing) else str(name)
        memory = ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
        unified = integrated.get(uuid)
        if unified is None:
            unsupported = isinstance(memory, Missing) and memory.code == NOT_SUPPORTED
            unified = unsupported or any(part in named.upper() for part in KNOWN_INTEGRATED)
        total = None if unified or isinstance(memory, Missing) else int(memory.total)
        return Device(
            index=self._numbering.number("nvidia", uuid, index),
            vendor="nvidia",
            name=named,
            uuid=uuid,
            memory_bytes=total,
            unified=unified,
            driver=driver,
        )
