"""Token ids to text, one step at a time."""

import codecs
from collections.abc import Iterable

from engine.text.tokenizer import TextTokenizer


class Detokenizer:
    """Text appears when its last byte has: a character split over tokens is held until whole.

    U+FFFD therefore only ever stands for bytes the model produced that are no UTF-8 at all.
    """

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, tokens: Iterable[int]) -> str:
        """New text. What is still held at the end is half a character, and is dropped."""
        return self._decoder.decode(b"".join(map(self._tokenizer.token_bytes, tokens)))
