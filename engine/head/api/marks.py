"""What a stream tells a gateway beside its chunks, so that the answer can be continued elsewhere.

The lines stand before the chunk they belong to, in its own event: who has the chunk has them. None
of them makes an event of its own: to some clients one without data is a fault once they have seen
an id.
"""

from collections import deque
from collections.abc import Sequence

import msgspec

from engine.head.answer import Delta
from engine.head.api.origin import Origin


class Marks:
    """Of one telling. `: j` begins the journal anew; `: c` says how much of a prompt was cached;
    `: t` lists tokens of an answer."""

    def __init__(self, origin: Origin, answers: int, extra: bytes, *, held: bool) -> None:
        """`extra`: another line for the beginning. `held`: a token is listed only once its text is
        out, because what else is told of it could not be told again; else when it is drawn."""
        self._begin = b": j " + msgspec.json.encode(origin) + b"\n" + extra
        self._held = held
        self._drawn: list[deque[int]] = [deque() for _ in range(answers)]
        self._listed: dict[int, list[int]] = {}
        self._cached: dict[int, int] = {}
        self._known: set[int] = set()

    def add(self, delta: Delta, told: int, cached: int | None) -> None:
        """`told`: tokens whose text is out with this delta."""
        drawn = self._drawn[delta.index]
        if delta.drawn is not None:
            drawn.append(delta.drawn)
        count = told if self._held and delta.finish is None else len(drawn)
        if count:
            listed = self._listed.setdefault(delta.index, [])
            listed += [drawn.popleft() for _ in range(count)]
        if cached is not None and delta.index not in self._known:
            self._known.add(delta.index)
            self._cached[delta.index] = cached

    def take(self) -> bytes:
        """Lines since the last call."""
        lines = self._begin
        for index, count in self._cached.items():
            lines += b": c %d %d\n" % (index, count)
        for index, tokens in self._listed.items():
            lines += b": t %d %s\n" % (index, _numbers(tokens, b" "))
        self._begin = b""
        self._cached.clear()
        self._listed.clear()
        return lines


class Counts:
    """Chunks so far of every answer, and one more count for what closes the stream."""

    def __init__(self, base: Sequence[int], sent: Sequence[int], answers: int) -> None:
        """`sent` is what the reader has; of each answer the first so many are passed over."""
        self._counts = [*base, *[0] * (answers + 1 - len(base))]
        self._sent = [*sent, *[0] * (answers + 1 - len(sent))]

    def is_new(self, index: int) -> bool:
        """Count one more chunk of an answer; whether the reader lacks it."""
        self._counts[index] += 1
        return self._counts[index] > self._sent[index]

    @property
    def line(self) -> bytes:
        """As the event's id; the closing count only once it is not 0."""
        counts = self._counts if self._counts[-1] else self._counts[:-1]
        return b"id: %s\n" % _numbers(counts, b",")


def read_counts(text: str) -> list[int]:
    """From an event's id; raises ValueError for anything else."""
    return [int(number) for number in text.split(",")] if text else []


def _numbers(numbers: Sequence[int], separator: bytes) -> bytes:
    return separator.join(b"%d" % number for number in numbers)
