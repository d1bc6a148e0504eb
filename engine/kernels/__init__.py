"""Numeric kernels, chosen by what the processor can do."""

from engine.kernels.capabilities import choose_head, choose_linear, instruction_sets
from engine.kernels.linear import Fp32Linear, Linear, LinearFactory
from engine.kernels.split import SplitLinear

__all__ = [
    "Fp32Linear",
    "Linear",
    "LinearFactory",
    "SplitLinear",
    "choose_head",
    "choose_linear",
    "instruction_sets",
]
