"""Weight and activation quantisation."""

from engine.quant.int8 import LIMIT, quantize_rows
from engine.quant.rotation import Rotation

__all__ = ["LIMIT", "Rotation", "quantize_rows"]
