"""Weight and activation quantisation."""

from engine.quant.int8 import LIMIT, quantize_rows

__all__ = ["LIMIT", "quantize_rows"]
