"""Numeric kernels, chosen by what the processor can do."""

from engine.kernels.capabilities import choose_head, choose_linear, instruction_sets
from engine.kernels.linear import Linear, LinearFactory

__all__ = ["Linear", "LinearFactory", "choose_head", "choose_linear", "instruction_sets"]
