"""The bundled model's file, header and tokenizer, read once."""

from functools import cache

from engine.bundled import bundled_model
from engine.checkpoint import Checkpoint, open_checkpoint
from engine.text.tokenizer import TextTokenizer

__all__ = ["bundled_checkpoint", "bundled_model", "bundled_tokenizer"]


@cache
def bundled_checkpoint() -> Checkpoint:
    return open_checkpoint(bundled_model())


@cache
def bundled_tokenizer() -> TextTokenizer:
    return TextTokenizer(bundled_checkpoint().tokenizer)
