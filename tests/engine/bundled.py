"""The bundled model's file and tokenizer, read once."""

from functools import cache

from engine.bundled import bundled_model
from engine.checkpoint import open_checkpoint
from engine.text.tokenizer import TextTokenizer


@cache
def bundled_tokenizer() -> TextTokenizer:
    return TextTokenizer(open_checkpoint(bundled_model()).tokenizer)
