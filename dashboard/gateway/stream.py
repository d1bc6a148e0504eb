"""Server-sent events: passed through byte for byte, or read into messages."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from django.utils.translation import gettext as _

from dashboard.gateway.errors import ApiError
from dashboard.gateway.routes import Target
from dashboard.gateway.upstream import Answer, broken

DONE = b"data: [DONE]"
KEPT_TAIL = 64
MAX_EVENT_BYTES = 16 * 1024 * 1024


class Relay:
    """A head's stream for Django to send on, untouched.

    When the head goes away before `[DONE]` the caller gets an error event, never a silent end and
    never an endless wait. Django calls `close` when the caller is gone.
    """

    def __init__(self, target: Target, answer: Answer) -> None:
        self._target = target
        self._answer = answer

    def close(self) -> None:
        self._answer.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        tail = b""
        try:
            async with aclosing(self._answer.chunks()) as chunks:
                async for chunk in chunks:
                    tail = (tail + chunk)[-KEPT_TAIL:]
                    yield chunk
            if DONE not in tail:
                raise broken(self._target, "the stream ended without [DONE]")
        except ApiError as error:
            separator = b"" if not tail or tail.endswith(b"\n\n") else b"\n\n"
            yield separator + b"data: " + error.encode() + b"\n\n"


class EventReader:
    """Cuts a byte stream into the `data:` payloads of its events, across any chunk borders."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Payloads completed by `chunk`. Raises ApiError on an event without end."""
        self._buffer = (self._buffer + chunk).replace(b"\r\n", b"\n")
        *events, self._buffer = self._buffer.split(b"\n\n")
        if len(self._buffer) > MAX_EVENT_BYTES:
            raise ApiError(_("The answer came in a form that cannot be read."), status=502)
        return [payload for event in events if (payload := _payload(event))]


def _payload(event: bytes) -> bytes:
    """The `data` lines of one event, joined; empty for comments and keep-alives."""
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line[:5] == b"data:"]
    return b"\n".join(lines)
