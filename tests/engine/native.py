"""The engine with and without its own kernels in one process."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.kernels import capabilities
from engine.models import whole
from engine.native.library import Library, native


def kernels() -> Library:
    """This processor's; the test is skipped, by their name, where there are none."""
    found = native()
    if found is None:
        pytest.skip("the engine's own kernels are not compiled, or not for this processor")
    return found


@contextmanager
def torch_alone() -> Iterator[None]:
    """As on a machine without a compiler."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (capabilities, whole):
            patch.setattr(module, "native", lambda: None)
        yield
