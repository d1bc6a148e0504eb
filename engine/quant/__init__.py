"""Weight and activation quantisation."""

from engine.quant.fp8 import FP8_LIMIT, quantize_fp8
from engine.quant.int4 import quantize_groups
from engine.quant.int8 import LIMIT, quantize_rows
from engine.quant.microscaling import MX_BLOCK, microscale
from engine.quant.rotation import Rotation

__all__ = [
    "FP8_LIMIT",
    "LIMIT",
    "MX_BLOCK",
    "Rotation",
    "microscale",
    "quantize_fp8",
    "quantize_groups",
    "quantize_rows",
]
