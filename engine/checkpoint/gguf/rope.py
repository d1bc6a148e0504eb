"""Rotary positions as GGUF declares them; conventions of llama.cpp."""

import math
import struct
from collections.abc import Mapping

from engine.checkpoint.declared import Declared
from engine.checkpoint.files import opened
from engine.checkpoint.gguf.cursor import Cursor
from engine.checkpoint.gguf.tensors import LONG_FACTORS, ROPE_FREQS, SHORT_FACTORS
from engine.checkpoint.stored import TensorInfo
from engine.errors import gettext_noop as _
from engine.errors import said
from engine.model_config import (
    DivisorScaling,
    LinearScaling,
    LongRopeScaling,
    Rope,
    RopeScaling,
    YarnScaling,
)

KNOWN = ("none", "linear", "yarn", "longrope")


def read_rope(
    declared: Declared, prefix: str, width: int, tensors: Mapping[str, TensorInfo]
) -> Rope:
    """`width` is that of the part of a head that may rotate."""
    dimensions = declared.integer(f"{prefix}.rope.dimension_count", width)
    if dimensions > width or dimensions % 2:
        raise declared.refuse(
            _("rotary positions over %(rotated)s of %(head_dim)s dimensions are not possible"),
            rotated=dimensions,
            head_dim=width,
        )
    theta = declared.number(f"{prefix}.rope.freq_base", 10_000.0)
    scaling = _scaling(declared, prefix, dimensions, tensors)
    return Rope(theta=theta, dimensions=dimensions, scaling=scaling)


def local_rope(declared: Declared, prefix: str, rope: Rope) -> Rope:
    """Of sliding layers: a base of their own, never scaled."""
    theta = declared.number(f"{prefix}.rope.freq_base_swa", 10_000.0)
    return Rope(theta=theta, dimensions=rope.dimensions)


def yarn_temperature(declared: Declared, prefix: str) -> float:
    """What YaRN multiplies both queries and keys by in DeepSeek's models; 1 without YaRN."""
    multiplier = declared.get(f"{prefix}.rope.scaling.yarn_log_multiplier")
    if _kind(declared, prefix) != "yarn" or multiplier is None:
        return 1.0
    factor = declared.number(f"{prefix}.rope.scaling.factor")
    multiplier = declared.amount(f"{prefix}.rope.scaling.yarn_log_multiplier")
    return 1.0 + multiplier * math.log(factor) if factor > 1 else 1.0


def _kind(declared: Declared, prefix: str) -> str:
    old = declared.get(f"{prefix}.rope.scale_linear") not in (None, 1.0)
    return declared.text(f"{prefix}.rope.scaling.type", "linear" if old else "none")


def _scaling(
    declared: Declared, prefix: str, dimensions: int, tensors: Mapping[str, TensorInfo]
) -> RopeScaling | None:
    kind = _kind(declared, prefix)
    if kind not in KNOWN:
        raise declared.refuse(
            _("rotary scaling of type %(scaling)r is not supported; supported: %(known)s"),
            scaling=kind,
            known=", ".join(KNOWN),
        )
    if ROPE_FREQS in tensors:
        if kind != "none":
            raise declared.refuse(
                _("tensor %(tensor)r and rotary scaling of type %(scaling)r cannot both apply"),
                tensor=ROPE_FREQS,
                scaling=kind,
            )
        return DivisorScaling(_divisors(declared, tensors, ROPE_FREQS, dimensions))
    long = LONG_FACTORS in tensors or SHORT_FACTORS in tensors or kind == "longrope"
    return (
        _longrope(declared, prefix, dimensions, tensors)
        if long
        else _declared_scaling(declared, prefix, kind)
    )


def _declared_scaling(declared: Declared, prefix: str, kind: str) -> RopeScaling | None:
    if kind == "none":
        return None
    old = declared.get(f"{prefix}.rope.scale_linear")
    factor = declared.number(f"{prefix}.rope.scaling.factor", old)
    if kind == "linear":
        return LinearScaling(factor)
    return _yarn(declared, prefix, factor)


def _yarn(declared: Declared, prefix: str, factor: float) -> YarnScaling:
    """DeepSeek's log multiplier moves the temperature from the rotation to the score scale."""
    start = f"{prefix}.rope.scaling"
    extrapolated = declared.amount(f"{start}.yarn_ext_factor", 1.0)
    if extrapolated != 1.0:
        raise declared.refuse(
            _("a YaRN extrapolation factor of %(factor)s is not supported, only 1 is"),
            factor=extrapolated,
        )
    temperature = 1.0 + 0.1 * math.log(factor) if factor > 1 else 1.0
    if declared.get(f"{start}.yarn_log_multiplier") is not None:
        temperature = 1.0
    attention = declared.number(f"{start}.yarn_attn_factor", 1.0)
    attention *= declared.number(f"{start}.attn_factor", 1.0)
    context = declared.integer(f"{prefix}.context_length")
    return YarnScaling(
        factor=factor,
        original_context=declared.integer(f"{start}.original_context_length", context),
        attention_factor=temperature * attention,
        beta_fast=declared.number(f"{start}.yarn_beta_fast", 32.0),
        beta_slow=declared.number(f"{start}.yarn_beta_slow", 1.0),
    )


def _longrope(
    declared: Declared, prefix: str, dimensions: int, tensors: Mapping[str, TensorInfo]
) -> LongRopeScaling:
    start = f"{prefix}.rope.scaling"
    context = declared.integer(f"{prefix}.context_length")
    return LongRopeScaling(
        short_factors=_divisors(declared, tensors, SHORT_FACTORS, dimensions),
        long_factors=_divisors(declared, tensors, LONG_FACTORS, dimensions),
        original_context=declared.integer(f"{start}.original_context_length", context),
        attention_factor=declared.number(f"{start}.attn_factor", 1.0),
    )


def _divisors(
    declared: Declared, tensors: Mapping[str, TensorInfo], name: str, dimensions: int
) -> tuple[float, ...]:
    """One float32 for each rotated pair."""
    info = tensors.get(name)
    if info is None:
        raise declared.refuse(_("tensor %(tensor)r is missing"), tensor=name)
    if info.shape != (dimensions // 2,) or info.format.name != "F32":
        raise declared.refuse(
            _("tensor %(tensor)r should hold %(count)s float32 numbers"),
            tensor=name,
            count=dimensions // 2,
        )
    with opened(info.path) as file:
        cursor = Cursor(file.fileno(), info.path, info.offset)
        raw = cursor.take(info.nbytes, said(_("tensor %(tensor)r"), tensor=name))
    values = struct.unpack(f"<{dimensions // 2}f", raw)
    if not all(0 < value < math.inf for value in values):
        raise declared.refuse(
            _("tensor %(tensor)r holds numbers that are not positive"), tensor=name
        )
    return values
