"""Radians a position turns each pair of rotated dimensions, under every kind of scaling.

All are functions of the deployment's context limit alone, never of a running length: a key that is
in the cache must not change when its sequence grows.
"""

import math
from functools import singledispatch

import torch
from torch import Tensor

from engine.model_config import (
    DivisorScaling,
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    Rope,
    RopeScaling,
    YarnScaling,
)

Frequencies = tuple[Tensor, float]
"""float32 (dimensions / 2,), and what cosine and sine are multiplied by."""


def rope_frequencies(rope: Rope, limit: int) -> Frequencies:
    """`limit` is the longest sequence of the deployment, in tokens."""
    if rope.scaling is None:
        return 1.0 / _powers(rope.theta, rope.dimensions), 1.0
    return _scaled(rope.scaling, rope, limit)


def _powers(theta: float, dimensions: int) -> Tensor:
    exponents = torch.arange(0, dimensions, 2, dtype=torch.float32) / dimensions
    return torch.pow(theta, exponents)


@singledispatch
def _scaled(scaling: RopeScaling, rope: Rope, limit: int) -> Frequencies:
    raise TypeError(f"No frequencies for {type(scaling).__name__}.")


@_scaled.register
def _linear(scaling: LinearScaling, rope: Rope, limit: int) -> Frequencies:
    return 1.0 / _powers(rope.theta, rope.dimensions) / scaling.factor, 1.0


@_scaled.register
def _dynamic(scaling: DynamicScaling, rope: Rope, limit: int) -> Frequencies:
    """The base of NTK-aware scaling (bloc97, 2023) for a sequence of `limit` tokens."""
    stretch = max(limit, scaling.original_context) / scaling.original_context
    growth = scaling.factor * stretch - (scaling.factor - 1)
    theta = rope.theta * growth ** (rope.dimensions / (rope.dimensions - 2))
    return 1.0 / _powers(theta, rope.dimensions), 1.0


@_scaled.register
def _yarn(scaling: YarnScaling, rope: Rope, limit: int) -> Frequencies:
    """Fast pairs keep their frequency, slow ones are divided, a ramp lies between (section 3.2)."""
    low, high = (_turning(scaling, rope, turns) for turns in (scaling.beta_fast, scaling.beta_slow))
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0.0), min(high, rope.dimensions - 1.0)
    steps = torch.arange(rope.dimensions // 2, dtype=torch.float32)
    divided = ((steps - low) / max(high - low, 0.001)).clamp(0, 1)
    plain = 1.0 / _powers(rope.theta, rope.dimensions)
    return plain / scaling.factor * divided + plain * (1 - divided), scaling.attention_factor


def _turning(scaling: YarnScaling, rope: Rope, turns: float) -> float:
    """Which pair turns round `turns` times within the original context."""
    wavelength = scaling.original_context / (turns * 2 * math.pi)
    return rope.dimensions * math.log(wavelength) / (2 * math.log(rope.theta))


@_scaled.register
def _llama3(scaling: Llama3Scaling, rope: Rope, limit: int) -> Frequencies:
    plain = 1.0 / _powers(rope.theta, rope.dimensions)
    turns = scaling.original_context * plain / (2 * math.pi)
    ramp = scaling.high_freq_factor - scaling.low_freq_factor
    kept = ((turns - scaling.low_freq_factor) / ramp).clamp(0, 1)
    return (1 - kept) * plain / scaling.factor + kept * plain, 1.0


@_scaled.register
def _longrope(scaling: LongRopeScaling, rope: Rope, limit: int) -> Frequencies:
    long = limit > scaling.original_context
    factors = torch.tensor(scaling.long_factors if long else scaling.short_factors)
    return 1.0 / (factors * _powers(rope.theta, rope.dimensions)), scaling.attention_factor


@_scaled.register
def _divisors(scaling: DivisorScaling, rope: Rope, limit: int) -> Frequencies:
    plain = 1.0 / _powers(rope.theta, rope.dimensions)
    return plain / torch.tensor(scaling.divisors), 1.0
