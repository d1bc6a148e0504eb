"""Faults (XIDs) of NVIDIA devices as they happen: from the driver's events, where a device offers
them, else from the kernel's log."""

import ctypes
from collections import Counter
from collections.abc import Iterator

import pynvml

from monitoring.metrics import GPU_XID_ERRORS
from monitoring.probes.devices import Device
from monitoring.probes.nvidia.calls import NOT_SUPPORTED, Missing, ask
from monitoring.probes.xids import GRAVE, Place, Xids
from monitoring.samples import Sample, measured, unavailable

WAIT_MILLISECONDS = 1
MOST_EVENTS = 64
"""Taken in one reading; the driver keeps the others for the next."""


class FaultEvents:
    """All devices' events. Made anew when the driver is opened anew; counts are kept."""

    def __init__(self, log: Xids) -> None:
        self._log = log
        self._counts: dict[str, Counter[int]] = {}
        self._set: object | None = None
        self._registered: dict[int, str] = {}
        """The handle's address -> the device's subject."""

    def register(self, handles: dict[str, object]) -> None:
        """Subject -> handle, of all devices there are."""
        self.close()
        made = ask(pynvml.nvmlEventSetCreate)
        if isinstance(made, Missing):
            return
        self._set = made
        for subject, handle in handles.items():
            kinds = ask(pynvml.nvmlDeviceGetSupportedEventTypes, handle)
            if isinstance(kinds, Missing) or not kinds & pynvml.nvmlEventTypeXidCriticalError:
                continue
            kind = pynvml.nvmlEventTypeXidCriticalError
            if not isinstance(ask(pynvml.nvmlDeviceRegisterEvents, handle, kind, made), Missing):
                self._registered[_address(handle)] = subject
                self._counts.setdefault(subject, Counter())

    def close(self) -> None:
        if self._set is not None:
            ask(pynvml.nvmlEventSetFree, self._set)
        self._set = None
        self._registered.clear()

    def gather(self) -> None:
        """Count what has come since the last time."""
        if not self._registered:
            return
        for _ in range(MOST_EVENTS):
            event = ask(pynvml.nvmlEventSetWait_v2, self._set, WAIT_MILLISECONDS)
            if isinstance(event, Missing):
                return
            subject = self._registered.get(_address(event.device))
            if subject and event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                self._counts[subject][int(event.eventData)] += 1

    def samples(self, device: Device, place: Place | None) -> Iterator[Sample]:
        """Of all faults together, of each grave one, and of each other that has come up."""
        subject, source = device.subject, "NVML events"
        counts = self._counts.get(subject)
        if counts is None:
            source = "kernel log"
            # Of a device whose place is not known nobody can say that it had none.
            unread = self._log.unread or ("" if place else NOT_SUPPORTED)
            if unread:
                yield unavailable(
                    GPU_XID_ERRORS,
                    unread,
                    source=source,
                    scope="accelerator",
                    subject=subject,
                )
                return
            counts = self._log.of(place)
        numbers = sorted({*GRAVE, *counts})
        told = {"": counts.total()} | {str(number): counts[number] for number in numbers}
        for label, count in told.items():
            yield measured(
                GPU_XID_ERRORS,
                float(count),
                source=source,
                scope="accelerator",
                subject=subject,
                label=label,
            )


def _address(handle: object) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # A handle.
