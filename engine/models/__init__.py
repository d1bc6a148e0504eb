"""Decoders, one builder an architecture."""

from engine.models.decoder import Decoder
from engine.models.registry import BUILDERS, load_decoder

__all__ = ["BUILDERS", "Decoder", "load_decoder"]
