"""Decoders: one builder, whatever the architecture."""

from engine.models.decoder import Decoder
from engine.models.loading import load_decoder

__all__ = ["Decoder", "load_decoder"]
