"""What a model thinks before it answers, kept apart from the answer.

Only a block at the very beginning counts: one the template has opened in the prompt, or one the
model opens first thing. White space at the edges of the block belongs to neither side.
"""

from collections.abc import Container

import msgspec

from engine.text.stops import overlap


class Tags(msgspec.Struct, frozen=True):
    """What encloses a model's reasoning."""

    open: str
    close: str


KNOWN = (Tags("<think>", "</think>"), Tags("[THINK]", "[/THINK]"))


def find_tags(template: str, vocabulary: Container[str]) -> Tags | None:
    """The tags a model uses: those its template names, or that are both tokens of their own."""
    for tags in KNOWN:
        named = tags.open in template or tags.close in template
        if named or (tags.open in vocabulary and tags.close in vocabulary):
            return tags
    return None


class Split(msgspec.Struct, frozen=True):
    reasoning: str
    content: str


class ReasoningSplitter:
    """One answer. A tag is found whole, however the tokens or a held-back stop string cut it."""

    def __init__(self, tags: Tags | None, *, opened: bool = False) -> None:
        """`opened`: the prompt ends inside the block."""
        self._tags = tags or Tags("", "")
        self._buffer = ""
        self._begun = opened and tags is not None
        self._ended = tags is None
        self._told = tags is None
        """Whether anything was said since the last tag."""

    @property
    def held(self) -> int:
        """Characters that were fed and not yet told."""
        return len(self._buffer)

    def feed(self, text: str) -> Split:
        self._buffer += text
        if not self._begun and not self._ended:
            self._find_opening()
        reasoning = self._think() if self._begun and not self._ended else ""
        return Split(reasoning, self._answer() if self._ended else "")

    def finish(self) -> Split:
        """The answer has ended; a block that is still open is all reasoning."""
        rest, self._buffer = self._buffer, ""
        if self._begun and not self._ended:
            return Split(rest.rstrip() if self._told else rest.strip(), "")
        return Split("", rest)

    def _find_opening(self) -> None:
        text = self._buffer.lstrip()
        if text.startswith(self._tags.open):
            self._buffer = text[len(self._tags.open) :]
            self._begun = True
        elif text and not self._tags.open.startswith(text):
            self._ended = self._told = True

    def _think(self) -> str:
        before, close, after = self._buffer.partition(self._tags.close)
        if close:
            self._buffer, self._ended = after, True
            thought = before.rstrip()
        else:
            keep = overlap(before, self._tags.close)
            thought = before[: len(before) - keep].rstrip()
            self._buffer = before[len(thought) :]
        if not self._told:
            thought = thought.lstrip()
        self._told = not close and (self._told or bool(thought))
        return thought

    def _answer(self) -> str:
        text = self._buffer if self._told else self._buffer.lstrip()
        self._told = self._told or bool(text)
        self._buffer = ""
        return text
