"""Numeric kernels, chosen by what the processor can do."""

from engine.kernels.linear import Linear, LinearFactory, choose_linear

__all__ = ["Linear", "LinearFactory", "choose_linear"]
