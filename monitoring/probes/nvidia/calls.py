"""One call into NVML, and what it means when it fails: a value less, with its reason."""

import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec
import pynvml

from monitoring.samples import gettext_noop

log = logging.getLogger(__name__)

T = TypeVar("T")

NOT_SUPPORTED = gettext_noop("This accelerator's driver does not offer it.")
TOO_OLD = gettext_noop("The installed driver is too old to offer it.")
DENIED = gettext_noop("The driver shows it to root only.")
LOST = gettext_noop("The accelerator has fallen off the bus, or its driver was unloaded.")
RESET = gettext_noop("The accelerator asks to be reset before it answers again.")
NO_LIBRARY = gettext_noop("NVIDIA's library libnvidia-ml.so.1 is not installed.")
NO_DRIVER = gettext_noop("NVIDIA's driver is not loaded.")
MISMATCH = gettext_noop(
    "The driver was replaced under the running agent; restart the agent to read it."
)
REFUSED = gettext_noop("The driver refused to answer; the agent's log says how.")

LATE = gettext_noop("The driver did not answer in time.")

REASONS = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: TOO_OLD,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: TOO_OLD,
    pynvml.NVML_ERROR_NO_PERMISSION: DENIED,
    pynvml.NVML_ERROR_GPU_IS_LOST: LOST,
    pynvml.NVML_ERROR_NOT_FOUND: LOST,
    pynvml.NVML_ERROR_UNINITIALIZED: LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED: RESET,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: NO_LIBRARY,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: NO_DRIVER,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: MISMATCH,
    pynvml.NVML_ERROR_TIMEOUT: LATE,
}
GONE = {
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_RESET_REQUIRED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
}
"""What says that the handle is of no use any more."""


class Missing(msgspec.Struct, frozen=True):
    reason: str
    gone: bool = False
    code: int = 0


def ask(call: Callable[..., T], *arguments: object) -> T | Missing:
    """The call's answer, or why there is none."""
    try:
        return call(*arguments)
    except pynvml.NVMLError as error:
        code = int(error.value)
        if code not in REASONS and (call, code) not in _told:  # Once, not every second.
            _told.add((call, code))
            log.warning("NVML: %s: %s", getattr(call, "__name__", call), error)
        return Missing(REASONS.get(code, REFUSED), code in GONE, code)


_told: set[tuple[object, int]] = set()


def field(handle: object, number: int) -> int | Missing:
    """One of the fields that have no function of their own, where it is a whole number."""
    answer = ask(pynvml.nvmlDeviceGetFieldValues, handle, [number])
    if isinstance(answer, Missing):
        return answer
    if answer[0].nvmlReturn != pynvml.NVML_SUCCESS:
        code = int(answer[0].nvmlReturn)
        return Missing(REASONS.get(code, NOT_SUPPORTED), code in GONE, code)
    return _whole(answer[0])


def _whole(value: object) -> int | Missing:
    kind, union = value.valueType, value.value  # type: ignore[attr-defined]  # A C structure.
    if kind == pynvml.NVML_VALUE_TYPE_UNSIGNED_INT:
        return int(union.uiVal)
    if kind in (pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG, pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG):
        return int(union.ullVal)
    return Missing(REFUSED)
