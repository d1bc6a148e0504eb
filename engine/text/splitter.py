"""Finds the tokens that stand for themselves in a text, such as `<|im_start|>`."""

import re
from collections.abc import Iterable


class Splitter:
    """Cuts a text at every one of `tokens`; where several begin, the longest counts.

    One regular expression of them all takes long to compile and to try where a vocabulary has
    thousands, so only their first two characters are searched for.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = frozenset(tokens)
        starts = {token[:2] for token in self._tokens}
        self._lengths = {start: self._lengths_behind(start) for start in starts}
        either = "|".join(re.escape(start) for start in sorted(starts, key=len, reverse=True))
        self._start = re.compile(f"(?=({either}))") if either else None

    def __call__(self, text: str) -> list[str]:
        """Alternately plain text, which may be empty, and a token; ends with plain text."""
        if self._start is None:
            return [text]
        pieces: list[str] = []
        end = 0
        for found in self._start.finditer(text):
            at = found.start()
            token = self._token_at(text, at, found[1]) if at >= end else None
            if token is not None:
                pieces += [text[end:at], token]
                end = at + len(token)
        return [*pieces, text[end:]]

    def _token_at(self, text: str, at: int, start: str) -> str | None:
        for length in self._lengths[start]:
            token = text[at : at + length]
            if token in self._tokens:
                return token
        return None

    def _lengths_behind(self, start: str) -> list[int]:
        lengths = {len(token) for token in self._tokens if token.startswith(start)}
        if start[:1] in self._tokens:
            lengths.add(1)
        return sorted(lengths, reverse=True)
