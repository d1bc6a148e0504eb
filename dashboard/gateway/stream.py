"""A passage as Django sends it on: byte for byte what the heads wrote for the caller."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from dashboard.gateway.blocks import Comment, Event
from dashboard.gateway.errors import ApiError
from dashboard.gateway.passage import Passage


class Relay:
    """When nobody goes on with the answer the caller gets an error event, never a silent end and
    never an endless wait. Django calls `close` when the caller is gone.
    """

    def __init__(self, passage: Passage, sent: Sequence[int] = ()) -> None:
        """`sent`: what a caller who comes back has got, from its last event's id."""
        self._passage = passage
        self._seen = Seen(sent)

    def close(self) -> None:
        self._passage.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async with aclosing(self._passage.blocks()) as blocks:
                async for block in blocks:
                    if isinstance(block, Comment) or not self._seen.has(block):
                        yield block.encode()
        except ApiError as error:
            yield b"data: " + error.encode() + b"\n\ndata: [DONE]\n\n"


class Seen:
    """Tells events that a caller has from those it lacks."""

    def __init__(self, sent: Sequence[int]) -> None:
        self._sent = list(sent)
        self._counts: list[int] = []

    def has(self, event: Event) -> bool:
        if not self._sent or not (number := event.id):
            return False
        before, self._counts = self._counts, read_counts(number.decode())
        before += [0] * (len(self._counts) - len(before))
        for index, count in enumerate(self._counts):
            if count != before[index]:
                return index < len(self._sent) and count <= self._sent[index]
        return False


def read_counts(number: str) -> list[int]:
    """From an event's id; raises ValueError for anything else."""
    return [int(count) for count in number.split(",")]
