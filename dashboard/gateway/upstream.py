"""The way to a replica's head and back: one HTTP request, closed as soon as nobody listens."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from weakref import WeakKeyDictionary

import aiohttp
from django.utils.translation import gettext as _

from dashboard.gateway.errors import ApiError
from dashboard.gateway.routes import RETRY_SECONDS, Target

CONNECT_SECONDS = 5.0
STALL_SECONDS = 300.0
"""Longest silence in a stream; covers the wait in the queue of an engine that never says so."""
SILENCE_SECONDS = 8.0
"""Longest silence of a head that keeps a journal: it says every few seconds that it is there."""
JOURNAL_HEADER = "X-Tandem-Journal"
READER_HEADER = "X-Tandem-Reader"
"""Who reads: a stream that another reader has taken up is not dropped by the one before."""
DROP_SECONDS = 5.0
DROP_AGAIN = (0.5, 2.0, 5.0)
"""Pauses before a head is told once more of a request that it may still be reading."""
ANSWER_SECONDS = 1800.0
"""Longest wait for a whole answer that is not streamed."""

_sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()


def session() -> aiohttp.ClientSession:
    """The running loop's session.

    No connection is kept for a second request: a head may close an idle one at the very moment it
    is reused, and a POST must not be sent twice. A new one on a LAN costs far less than a token.
    """
    loop = asyncio.get_running_loop()
    current = _sessions.get(loop)
    if current is None or current.closed:
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        current = _sessions[loop] = aiohttp.ClientSession(connector=connector)
    return current


async def close_session() -> None:
    """Close the running loop's session, if it ever had one."""
    if (current := _sessions.pop(asyncio.get_running_loop(), None)) is not None:
        await current.close()


class Answer:
    """A head's response whose body is still on its way."""

    def __init__(self, target: Target, response: aiohttp.ClientResponse) -> None:
        self._loop = asyncio.get_running_loop()
        self._target = target
        self._response = response
        self.status = response.status
        self.headers = response.headers
        self.journaled = response.headers.get(JOURNAL_HEADER) == "1"
        """Whether another head can go on with this answer, and the head keeps it for a while."""
        self._body: bytes | None = None

    @property
    def is_stream(self) -> bool:
        return self._response.content_type == "text/event-stream"

    async def read(self) -> bytes:
        """The whole body, also a second time; 502 when the head dies before its end."""
        if self._body is not None:
            return self._body
        try:
            self._body = await self._response.read()
            return self._body
        except (aiohttp.ClientError, TimeoutError) as error:
            raise broken(self._target, error) from error
        finally:
            self._response.close()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives; 502 when it breaks off or falls silent."""
        content = self._response.content
        try:
            while True:
                async with asyncio.timeout(SILENCE_SECONDS if self.journaled else STALL_SECONDS):
                    chunk = await content.readany()
                if not chunk:
                    return
                yield chunk
        except (aiohttp.ClientError, TimeoutError) as error:
            raise broken(self._target, error) from error
        finally:
            self._response.close()

    def close(self) -> None:
        """Hang up. Safe from any thread and more than once."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._response.close)


async def ask(
    target: Target,
    path: str,
    body: bytes | None,
    *,
    stream: bool,
    request_id: str,
    reader: str = "",
    method: str = "POST",
) -> Answer:
    """Send one request to the head; 502 when it cannot be reached or does not begin to answer."""
    timeout = aiohttp.ClientTimeout(
        total=None if stream else ANSWER_SECONDS,
        sock_connect=CONNECT_SECONDS,
        sock_read=STALL_SECONDS if stream else ANSWER_SECONDS,
    )
    headers = {
        "Authorization": f"Bearer {target.token}",
        "Content-Type": "application/json",
        "X-Request-Id": request_id,
        JOURNAL_HEADER: "1",
        READER_HEADER: reader,
    }
    try:
        response = await session().request(
            method, target.base_url + path, data=body, headers=headers, timeout=timeout
        )
    except (aiohttp.ClientError, TimeoutError) as error:
        raise broken(target, error) from error
    if response.status in (401, 403):
        # The launch token is ours, not the caller's: their key is fine.
        response.close()
        raise broken(target, f"head answered {response.status}")
    return Answer(target, response)


async def drop(
    target: Target, request_id: str, reader: str = "", again: Sequence[float] = ()
) -> None:
    """Have a head abort a request at once. One that cannot be reached has lost it anyway, or aborts
    it soon by itself.

    `again`: pauses before it is told once more, where it does not know the request yet.
    """
    for pause in (0.0, *again):
        await asyncio.sleep(pause)
        if await _drop(target, request_id, reader) != 404:
            return


async def _drop(target: Target, request_id: str, reader: str) -> int:
    """The status that it answered; 0 for none."""
    timeout = aiohttp.ClientTimeout(total=DROP_SECONDS)
    headers = {"Authorization": f"Bearer {target.token}", READER_HEADER: reader}
    url = f"{target.base_url}/streams/{request_id}"
    with suppress(aiohttp.ClientError, TimeoutError):
        async with session().delete(url, headers=headers, timeout=timeout) as answer:
            return answer.status
    return 0


class Broken(ApiError):
    """A head that went away, or never was there."""

    cause: object = None
    elsewhere = False
    """Whether it is there, and somebody else is only better."""


def broken(target: Target, cause: object) -> Broken:
    """What to tell a caller whose head went away; the cause is for the log."""
    error = nobody(target.route)
    error.cause = f"{target.route} (launch {target.launch}): {cause!r}"
    return error


def nobody(route: str) -> Broken:
    """The same where no head is known at all."""
    message = _("%(name)s stopped answering. It is being restarted if it died; ask again shortly.")
    return Broken(
        message % {"name": route}, status=502, code="upstream_failed", retry_after=RETRY_SECONDS
    )
