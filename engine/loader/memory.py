"""Memory that loading has used up."""

import ctypes


def give_back() -> None:
    """Hand freed memory to the system. glibc keeps what small pieces were packed in: up to 160 MB
    that no plan counts. Other C libraries have no such call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
