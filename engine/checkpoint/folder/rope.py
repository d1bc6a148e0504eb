"""Rotary positions as config.json declares them, in the words of transformers 4 and 5.

4: `rope_theta` and `rope_scaling`; 5: `rope_parameters` with both, one a layer type if need be.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from engine.checkpoint.declared import Declared
from engine.errors import gettext_noop as _
from engine.model_config import (
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    Rope,
    RopeScaling,
    YarnScaling,
)

FULL, SLIDING = "full_attention", "sliding_attention"


def parameters(declared: Declared) -> Declared:
    """One set for all layers, whichever words the file uses."""
    given = _object(declared, "rope_parameters") or _object(declared, "rope_scaling")
    if FULL in given or SLIDING in given:
        raise declared.refuse(_("rotary parameters for each layer type are not supported here"))
    return _completed(declared, given, 10_000.0)


def gemma_parameters(declared: Declared) -> tuple[Declared, Declared]:
    """Of the full and of the sliding layers. Scaling in the older words is for the full ones."""
    nested = _object(declared, "rope_parameters")
    if nested and not {FULL, SLIDING} & nested.keys():
        raise declared.refuse(
            _("rotary parameters should be given for each layer type (full and sliding)")
        )
    inner = Declared(declared.name, nested)
    full = _object(inner, FULL) | _object(declared, "rope_scaling")
    local_theta = declared.number("rope_local_base_freq", 10_000.0)
    full = {"rope_theta": declared.number("rope_theta", 1_000_000.0), **full}
    sliding = {"rope_theta": local_theta, **_object(inner, SLIDING)}
    return _completed(declared, full, 0), _completed(declared, sliding, 0)


def read_rope(found: Declared, width: int) -> Rope:
    """`width` is that of the part of a head that may rotate."""
    fraction = found.number("partial_rotary_factor", 1.0)
    dimensions = int(width * fraction)
    if not 0 < dimensions <= width or dimensions % 2:
        raise found.refuse(
            _("rotary positions over %(rotated)s of %(head_dim)s dimensions are not possible"),
            rotated=dimensions,
            head_dim=width,
        )
    kind = _kind(found)
    reader = _SCALINGS.get(kind)
    if reader is None:
        raise found.refuse(
            _("rotary scaling of type %(scaling)r is not supported; supported: %(known)s"),
            scaling=kind,
            known=", ".join(_SCALINGS),
        )
    scaling = reader(found, dimensions)
    return Rope(theta=found.number("rope_theta"), dimensions=dimensions, scaling=scaling)


def score_temperature(found: Declared) -> float:
    """What DeepSeek's models multiply both queries and keys by, beside the rotation's own."""
    every = found.amount("mscale_all_dim", 0.0)
    if _kind(found) == "default" or not every:
        return 1.0
    return _temperature(found.number("factor"), every)


def _kind(found: Declared) -> str:
    return found.text("rope_type", found.text("type", "default"))


def _completed(declared: Declared, given: Mapping[str, Any], theta: float) -> Declared:
    """With the values that may stand outside of the rotary parameters."""
    outside = {
        "rope_theta": declared.number("rope_theta", theta or None) if theta else None,
        "partial_rotary_factor": declared.get("partial_rotary_factor"),
        "max_position_embeddings": declared.get("max_position_embeddings"),
    }
    original = declared.get("original_max_position_embeddings")
    inside = {key: value for key, value in given.items() if value is not None}
    if original is not None:
        inside["original_max_position_embeddings"] = original
    return Declared(declared.name, {**outside, **inside})


def _object(declared: Declared, key: str) -> dict[str, Any]:
    value = declared.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise declared.refuse(_("%(key)r should be an object"), key=key)
    return value


def _original(found: Declared) -> int:
    return found.integer(
        "original_max_position_embeddings", found.integer("max_position_embeddings")
    )


def _factor(found: Declared) -> float:
    """Stretch of the context; what both lengths say when it is not given by itself."""
    if found.get("factor") is not None:
        return found.number("factor")
    return found.integer("max_position_embeddings") / _original(found)


def _temperature(factor: float, scale: float = 1.0) -> float:
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0


def _default(found: Declared, dimensions: int) -> RopeScaling | None:
    return None


def _linear(found: Declared, dimensions: int) -> RopeScaling:
    return LinearScaling(found.number("factor"))


def _dynamic(found: Declared, dimensions: int) -> RopeScaling:
    """Beyond the model's own limit, whatever was its context before."""
    if dimensions <= 2:
        raise found.refuse(_("dynamic rotary scaling needs more than 2 dimensions"))
    return DynamicScaling(found.number("factor"), found.integer("max_position_embeddings"))


def _yarn(found: Declared, dimensions: int) -> RopeScaling:
    factor = _factor(found)
    mscale, every = found.amount("mscale", 0.0), found.amount("mscale_all_dim", 0.0)
    attention = _temperature(factor)
    if mscale and every:
        attention = _temperature(factor, mscale) / _temperature(factor, every)
    return YarnScaling(
        factor=factor,
        original_context=_original(found),
        attention_factor=found.number("attention_factor", attention),
        beta_fast=found.amount("beta_fast", 32.0) or 32.0,
        beta_slow=found.amount("beta_slow", 1.0) or 1.0,
        truncate=found.flag("truncate", True),
    )


def _llama3(found: Declared, dimensions: int) -> RopeScaling:
    low, high = found.number("low_freq_factor"), found.number("high_freq_factor")
    if high <= low:
        raise found.refuse(_("high_freq_factor must be more than low_freq_factor"))
    return Llama3Scaling(found.number("factor"), low, high, _original(found))


def _longrope(found: Declared, dimensions: int) -> RopeScaling:
    factor, original = _factor(found), _original(found)
    attention = 1.0
    if factor > 1 and original > 1:
        attention = math.sqrt(1 + math.log(factor) / math.log(original))
    return LongRopeScaling(
        short_factors=_divisors(found, "short_factor", dimensions),
        long_factors=_divisors(found, "long_factor", dimensions),
        original_context=original,
        attention_factor=found.number("attention_factor", attention),
    )


def _divisors(found: Declared, key: str, dimensions: int) -> tuple[float, ...]:
    divisors = found.numbers(key)
    if len(divisors) != dimensions // 2:
        raise found.refuse(
            _("%(key)r should hold %(wanted)s numbers, not %(count)s"),
            key=key,
            wanted=dimensions // 2,
            count=len(divisors),
        )
    return divisors


_SCALINGS: dict[str, Callable[[Declared, int], RopeScaling | None]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
    "su": _longrope,
}
