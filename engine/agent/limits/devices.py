"""Accelerators whose power and clock can be set. Blocking: called from one thread of its own."""

from collections.abc import Callable
from typing import Any, Protocol

import pynvml

from engine.errors import EngineError
from engine.errors import gettext_noop as _

DRIVER_GONE = (pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
WHY = {
    pynvml.NVML_ERROR_NO_PERMISSION: _(
        "The driver lets only root change this. Run the agent as root to use this limit."
    ),
    pynvml.NVML_ERROR_NOT_SUPPORTED: _("This accelerator does not let it be set."),
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: _("The driver is too old to set it."),
    pynvml.NVML_ERROR_GPU_IS_LOST: _("The accelerator has fallen off the bus."),
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: _("The NVIDIA driver is not installed."),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: _("The NVIDIA driver is not loaded."),
}
OTHERWISE = _("The driver refuses: %(error)s.")


class Unsettable(EngineError):
    """The driver does not do what was asked; says why."""


class Devices(Protocol):
    def uuids(self) -> list[str]:
        """In the driver's order; raises Unsettable when there is no driver to ask."""

    def power_limit(self, number: int) -> int:
        """Milliwatts; like all below it raises Unsettable."""

    def power_range(self, number: int) -> tuple[int, int]: ...

    def set_power_limit(self, number: int, milliwatts: int) -> None: ...

    def lock_clock(self, number: int, megahertz: int) -> None:
        """At most that."""

    def free_clock(self, number: int) -> None: ...


class NvidiaDevices:
    def __init__(self) -> None:
        self._begun = False

    def uuids(self) -> list[str]:
        count = self._ask(pynvml.nvmlDeviceGetCount)
        return [self._uuid(number) for number in range(count)]

    def power_limit(self, number: int) -> int:
        return int(self._of(number, pynvml.nvmlDeviceGetPowerManagementLimit))

    def power_range(self, number: int) -> tuple[int, int]:
        least, most = self._of(number, pynvml.nvmlDeviceGetPowerManagementLimitConstraints)
        return int(least), int(most)

    def set_power_limit(self, number: int, milliwatts: int) -> None:
        self._of(number, pynvml.nvmlDeviceSetPowerManagementLimit, milliwatts)

    def lock_clock(self, number: int, megahertz: int) -> None:
        self._of(number, pynvml.nvmlDeviceSetGpuLockedClocks, 0, megahertz)

    def free_clock(self, number: int) -> None:
        self._of(number, pynvml.nvmlDeviceResetGpuLockedClocks)

    def _uuid(self, number: int) -> str:
        try:
            uuid = self._of(number, pynvml.nvmlDeviceGetUUID)
        except Unsettable:  # A lost one keeps its place.
            return f"#{number}"
        return uuid.decode() if isinstance(uuid, bytes) else str(uuid)

    def _of(self, number: int, question: Callable[..., Any], *values: int) -> Any:
        handle = self._ask(pynvml.nvmlDeviceGetHandleByIndex, number)
        return self._ask(question, handle, *values)

    def _ask(self, question: Callable[..., Any], *values: Any) -> Any:
        try:
            if not self._begun:
                pynvml.nvmlInit()
                self._begun = True
            return question(*values)
        except pynvml.NVMLError as error:
            code = error.value
            if code in DRIVER_GONE:  # It may be loaded again.
                self._begun = False
            if code in WHY:
                raise Unsettable(WHY[code]) from error
            raise Unsettable(OTHERWISE, error=str(error)) from error
