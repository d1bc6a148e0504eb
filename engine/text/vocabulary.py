"""What every kind of vocabulary does: plain text to ids, and a token to its bytes."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from tokenizers import Tokenizer, models

from engine.checkpoint import TokenizerMetadata
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.text.splitter import Splitter

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Kinds of tokens, by the numbers of `tokenizer.ggml.token_type`."""


class Vocabulary(Protocol):
    """One kind of vocabulary. Safe to use from several threads."""

    leading_space: bool
    """A text's first word is given a space in front, which is no part of the text."""

    def encode(self, text: str, *, first: bool) -> list[int]:
        """Ids of plain text, in which no control token is recognised.

        `first` says that nothing, not even a control token, comes before it. TypeError: the text
        is not valid Unicode.
        """

    def spell(self, index: int) -> bytes:
        """What a token adds to a text, control tokens left aside."""


def of_kind(metadata: TokenizerMetadata, wanted: int) -> dict[str, int]:
    """Ids of all tokens of one kind, by their text."""
    kinds = zip(metadata.tokens, metadata.token_types, strict=True)
    return {token: index for index, (token, kind) in enumerate(kinds) if kind == wanted and token}


def build_merges(
    vocabulary: dict[str, int],
    merges: Sequence[tuple[str, str]],
    *,
    whole_words: bool = False,
    byte_fallback: bool = False,
) -> Tokenizer:
    """Byte-pair merges, earlier ones first; raises CheckpointError for one of unknown tokens."""
    try:
        model = models.BPE(
            vocab=vocabulary,
            merges=merges,
            ignore_merges=whole_words,
            byte_fallback=byte_fallback,
        )
    except Exception as error:  # the library raises nothing narrower
        raise CheckpointError(
            _("The tokenizer's merges do not fit its tokens: %(error)s."), error=str(error)
        ) from error
    return Tokenizer(model)


class MergedWords:
    """Byte-pair merges, around tokens that stand for themselves (`defined`, by their text)."""

    def __init__(self, merges: Tokenizer, defined: dict[str, int]) -> None:
        self._merges = merges
        self._defined = defined
        self._split = Splitter(defined)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for piece in filter(None, self._split(text)):
            known = self._defined.get(piece)
            ids += self._merged(piece) if known is None else [known]
        return ids

    def _merged(self, text: str) -> Iterable[int]:
        return self._merges.encode(text, add_special_tokens=False).ids
