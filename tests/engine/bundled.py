"""The bundled model's file, header and tokenizer, read once."""

import copy
from functools import cache

import msgspec

from engine.bundled import bundled_model
from engine.checkpoint import Checkpoint, open_checkpoint
from engine.text.tokenizer import TextTokenizer

__all__ = ["altered_checkpoint", "bundled_checkpoint", "bundled_model", "bundled_tokenizer"]


@cache
def bundled_checkpoint() -> Checkpoint:
    return open_checkpoint(bundled_model())


@cache
def bundled_tokenizer() -> TextTokenizer:
    return TextTokenizer(bundled_checkpoint().tokenizer)


FIRST_SPARE = 3
"""Of the control tokens that only code models use; the ones before it are in use."""


def altered_checkpoint(
    *, template: str | None = None, controls: tuple[str, ...] = (), add_bos: bool = False
) -> Checkpoint:
    """The same model with another chat template, or with control tokens of another model."""
    checkpoint = copy.copy(bundled_checkpoint())
    known = checkpoint.tokenizer
    tokens = list(known.tokens)
    tokens[FIRST_SPARE : FIRST_SPARE + len(controls)] = controls
    metadata = msgspec.structs.replace(
        known,
        tokens=tokens,
        chat_template=known.chat_template if template is None else template,
        add_bos=add_bos,
    )
    checkpoint.__dict__["tokenizer"] = metadata
    return checkpoint
