"""GGUF files, whole or split: strict, bounded, without torch."""

from engine.checkpoint.gguf.reader import open_gguf
from engine.checkpoint.gguf.split import gguf_parts

__all__ = ["gguf_parts", "open_gguf"]
