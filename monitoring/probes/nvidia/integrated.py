"""Which NVIDIA devices are a part of their processor, and so have its memory: as the CUDA driver
says. A program of its own, because that driver is loaded for good and may hang while it starts.

It prints a JSON object: UUID -> true or false. Imports nothing but the standard library.
"""

import ctypes
import json
import subprocess
import sys
import uuid

INTEGRATED = 18
"""CU_DEVICE_ATTRIBUTE_INTEGRATED."""
DEADLINE_SECONDS = 10.0


def ask() -> dict[str, bool] | None:
    """What the program says; None where there is no such driver or it did not answer."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", __file__],
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=True,
        )
        answer = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return {str(name): bool(value) for name, value in answer.items()}


def main() -> int:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 1
    count = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return 1
    print(json.dumps(dict(_device(cuda, ordinal) for ordinal in range(count.value))))
    return 0


def _device(cuda: ctypes.CDLL, ordinal: int) -> tuple[str, bool]:
    device, integrated = ctypes.c_int(), ctypes.c_int()
    raw = (ctypes.c_ubyte * 16)()
    cuda.cuDeviceGet(ctypes.byref(device), ordinal)
    cuda.cuDeviceGetAttribute(ctypes.byref(integrated), INTEGRATED, device)
    cuda.cuDeviceGetUuid_v2(raw, device)
    return f"GPU-{uuid.UUID(bytes=bytes(raw))}", bool(integrated.value)


if __name__ == "__main__":
    sys.exit(main())
