"""Bounds numbers smoothly (Gemma 2, arXiv 2408.00118)."""

from torch import Tensor


def soften(x: Tensor, cap: float | None) -> Tensor:
    """cap * tanh(x / cap), within -cap..cap; `x` itself without a cap."""
    return x if cap is None else (x / cap).tanh_().mul_(cap)
