"""A file system without a free byte."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

_CHUNK = 1 << 20


@contextlib.contextmanager
def fill(folder: Path) -> Iterator[Callable[[], None]]:
    """Full when entered, free again when left; the function takes what was freed meanwhile."""
    ballast = folder / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file:
            _take_all(file.fileno())
            yield lambda: _take_all(file.fileno())
    finally:
        ballast.unlink(missing_ok=True)


def _take_all(descriptor: int) -> None:
    size = os.fstat(descriptor).st_size
    chunk = _CHUNK
    while chunk:
        try:
            os.posix_fallocate(descriptor, size, chunk)
            size += chunk
        except OSError:
            chunk //= 2 if chunk > 4096 else 4096
