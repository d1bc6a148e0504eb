"""Bits of GGUF blocks: uint8 tensors of shape (blocks, bytes) taken apart."""

import torch
from torch import Tensor


def half(raw: Tensor, at: int) -> Tensor:
    """The float16 at byte `at` of each block, as a float32 column."""
    return raw[:, at : at + 2].contiguous().view(torch.float16).float()


def fields(packed: Tensor, bits: int, run: int) -> Tensor:
    """Numbers of `bits` bits, uint8 (blocks, bytes * 8 / bits).

    Of each `run` bytes the lowest fields come first, then the next higher ones of the same bytes.
    """
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8).unsqueeze(1)
    parts = (packed.reshape(len(packed), -1, 1, run) >> shifts) & ((1 << bits) - 1)
    return parts.flatten(1)
