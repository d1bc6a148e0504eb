"""The compiled kernels, loaded once and checked before they are trusted."""

import ctypes
import logging
import os
from ctypes import POINTER, c_char_p, c_int, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import torch

from engine.native import types
from engine.native.build import library

log = logging.getLogger(__name__)

SETS = ("avx512_vnni", "avx2")
"""The instruction sets there are kernels for, best first."""
_POINTER = c_void_p
_FUNCTIONS: dict[str, tuple[type[c_int] | None, tuple[Any, ...]]] = {
    "tandem_choose": (c_int, (c_char_p,)),
    "tandem_threads": (None, (c_int,)),
    "tandem_active": (c_int, ()),
    "tandem_pack_int8": (None, (_POINTER, c_int64, c_int64, _POINTER, _POINTER)),
    "tandem_pack_int4": (None, (_POINTER, c_int64, c_int64, _POINTER)),
    "tandem_advise": (None, (_POINTER, c_int64)),
    "tandem_linear": (c_int, (POINTER(types.Linear), _POINTER, c_int64, _POINTER)),
    "tandem_attention": (
        c_int,
        (POINTER(types.Attention), POINTER(types.Step), _POINTER, _POINTER),
    ),
    "tandem_mlp": (c_int, (POINTER(types.Mlp), POINTER(types.Step), _POINTER, _POINTER)),
    "tandem_layer": (
        c_int,
        (POINTER(types.Attention), POINTER(types.Mlp), POINTER(types.Step), _POINTER),
    ),
}


class Library:
    """The functions of one instruction set. All of a process share one team of threads."""

    def __init__(self, functions: ctypes.CDLL, instructions: str) -> None:
        self.instructions = instructions
        self._functions = functions

    def threads(self, count: int) -> None:
        """How many threads compute from now on."""
        self._functions.tandem_threads(count)

    def active(self) -> int:
        """How many of them worked in the last call: one alone while the processors are wanted by
        others."""
        return int(self._functions.tandem_active())

    def pack_int8(self, codes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """int8 codes (rows, columns) as panels, and each row's sum."""
        codes = codes.contiguous()
        rows, columns = codes.shape
        padded = -(-rows // 16) * 16
        panels = torch.empty(padded * -(-columns // 4) * 4, dtype=torch.int8)
        self.advise(panels)
        sums = torch.empty(padded, dtype=torch.int32)
        self._functions.tandem_pack_int8(
            codes.data_ptr(), rows, columns, panels.data_ptr(), sums.data_ptr()
        )
        return panels, sums

    def pack_int4(self, codes: torch.Tensor) -> torch.Tensor:
        """Codes 0..15, uint8 (rows, columns), columns in whole blocks of 32, two to a byte."""
        codes = codes.contiguous()
        rows, columns = codes.shape
        panels = torch.empty(-(-rows // 16) * 16 * columns // 2, dtype=torch.uint8)
        self.advise(panels)
        self._functions.tandem_pack_int4(codes.data_ptr(), rows, columns, panels.data_ptr())
        return panels

    def advise(self, memory: torch.Tensor) -> None:
        """Ask for large pages."""
        self._functions.tandem_advise(memory.data_ptr(), memory.nbytes)

    def linear(self, which: types.Linear, x: torch.Tensor, out: torch.Tensor) -> None:
        """`x` float32 (tokens, columns), whole; `out` (tokens, rows)."""
        _check(self._functions.tandem_linear(which, x.data_ptr(), len(x), out.data_ptr()))

    def attention(
        self, layer: types.Attention, step: types.Step, x: torch.Tensor, out: torch.Tensor
    ) -> None:
        _check(self._functions.tandem_attention(layer, step, x.data_ptr(), out.data_ptr()))

    def mlp(self, layer: types.Mlp, step: types.Step, x: torch.Tensor, out: torch.Tensor) -> None:
        _check(self._functions.tandem_mlp(layer, step, x.data_ptr(), out.data_ptr()))

    def layer(
        self, attention: types.Attention, mlp: types.Mlp, step: types.Step, x: torch.Tensor
    ) -> None:
        """Both halves, added to `x` (tokens, hidden)."""
        _check(self._functions.tandem_layer(attention, mlp, step, x.data_ptr()))


def _check(status: int) -> None:
    if status:
        raise MemoryError("The kernels got no memory for this step.")


@cache
def native() -> Library | None:
    """The kernels for this processor; None where there are none, and torch computes alone.

    `TANDEM_KERNELS=torch` leaves them out.
    """
    if os.environ.get("TANDEM_KERNELS") == "torch":
        return None
    path = library()
    return load(path) if path.exists() else None


def load(path: Path, sets: tuple[str, ...] = SETS) -> Library | None:
    """The kernels in `path` for the best of `sets` that this processor has."""
    try:
        functions = ctypes.CDLL(str(path))
    except OSError as error:
        log.warning("The engine's kernels cannot be loaded, and torch computes alone: %s", error)
        return None
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(functions, name)
        function.restype, function.argtypes = result, arguments
    for instructions in sets:
        if functions.tandem_choose(instructions.encode()):
            found = Library(functions, instructions)
            if _is_right(found):
                return found
            log.error("The kernels for %s compute wrongly here and are left out.", instructions)
    return None


def _is_right(found: Library) -> bool:
    """Whether products of whole numbers are what they must be, on a few rows and columns."""
    from engine.native.matrices import NativeMatrix

    noise = torch.Generator().manual_seed(7)
    codes = torch.randint(-127, 128, (33, 96), generator=noise, dtype=torch.int8)
    matrix = NativeMatrix.int8(found, codes, torch.ones(33), None, 1)
    x = torch.randint(-127, 128, (7, 96), generator=noise).float()
    x[:, 0] = 127.0
    wanted = x @ codes.float().t()
    return torch.allclose(matrix(x), wanted, rtol=1e-4, atol=1e-2)
