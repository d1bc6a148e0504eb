"""Token ids to text, one step at a time."""

import codecs
from collections.abc import Set

from engine.text.tokenizer import TextTokenizer


class Detokenizer:
    """Text appears when its last byte has: a character split over tokens is held until whole.

    U+FFFD therefore only ever stands for bytes the model produced that are no UTF-8 at all.
    """

    def __init__(self, tokenizer: TextTokenizer, shown: Set[int] = frozenset()) -> None:
        """`shown` are control tokens whose spelling is text; the others add nothing."""
        self._tokenizer = tokenizer
        self._shown = shown
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, tokens: list[int]) -> str:
        """New text. What is still held at the end is half a character, and is dropped."""
        return self._decoder.decode(b"".join(map(self._bytes, tokens)))

    @property
    def holds(self) -> bool:
        """Whether half a character waits for its rest."""
        return bool(self._decoder.getstate()[0])

    def _bytes(self, token: int) -> bytes:
        if token in self._shown:
            return spelled(self._tokenizer, token)
        return self._tokenizer.token_bytes(token)


def spelled(tokenizer: TextTokenizer, token: int) -> bytes:
    """A token's bytes; of a control token, which adds none to the text, its name."""
    known = tokenizer.token_bytes(token)
    if known or not 0 <= token < len(tokenizer.metadata.tokens):
        return known
    return tokenizer.metadata.tokens[token].encode("utf-8", "replace")
