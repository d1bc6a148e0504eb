"""An answer's way from whichever head has it to its caller; it outlives any of them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from dashboard.gateway import trace
from dashboard.gateway.blocks import BlockReader, Comment, Event
from dashboard.gateway.directory import targets_of
from dashboard.gateway.errors import ApiError
from dashboard.gateway.hold import PAUSE_SECONDS, Hold, Request
from dashboard.gateway.routes import Target
from dashboard.gateway.trace import Trace
from dashboard.gateway.upstream import Answer, Broken, broken

FRUITLESS = 5
"""Heads in a row that break off without one more token; then the request may be the reason."""
DONE = b"[DONE]"
PAUSED = b": paused"
BEAT_SECONDS = 3.0
"""Between two signs of life to a caller whose answer waits for a head."""

logger = logging.getLogger(__name__)


class Whole(msgspec.Struct, frozen=True):
    """An answer that is no stream."""

    status: int
    body: bytes
    headers: dict[str, str] = {}


class Passage:
    """`open` or `attach` it, then take its blocks, or the whole answer."""

    def __init__(self, request: Request, record: Trace | None = None) -> None:
        """`record`: is told of it too."""
        self._hold = Hold(request)
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._model = ""
        self._fruitless = 0
        self._progress = 0
        self._told = [trace.begin(request), *([record] if record else [])]

    @property
    def request(self) -> Request:
        return self._hold.request

    @property
    def launch(self) -> str:
        """Whose head has it now; empty where none does."""
        return self._hold.target.launch if self._hold.target else ""

    async def open(self) -> Answer:
        """Ask the first head that answers. ApiError where none does for too long."""
        request = self._hold.request
        try:
            answer = await self._hold.find(await targets_of(request.route, request.key))
        except ApiError as error:
            self._fail(error)
            raise
        self._taken(answer.status)
        self._model = self._hold.target.model if self._hold.target else ""
        return answer

    async def attach(self, target: Target, *, orphan: bool = False) -> Answer:
        """Take up a stream that its head still has. `orphan`: unless somebody reads it."""
        self._model = target.model
        answer = await self._hold.attach(target, orphan=orphan)
        if answer.is_stream:
            self._taken(answer.status)
        return answer

    async def blocks(self) -> AsyncGenerator[Comment | Event, None]:
        """Every comment and event up to `[DONE]`, from as many heads as it takes.

        Raises ApiError when nobody can go on. Leaving it early is hanging up.
        """
        try:
            while True:
                failure: Broken | None = None
                try:
                    async with aclosing(self._follow()) as blocks:
                        async for block in blocks:
                            yield block
                except Broken as error:
                    failure = error
                if failure is None:
                    return
                self._judge(failure)
                yield Comment(PAUSED)
                async with aclosing(_beats(self._resume(failure))) as beats:
                    async for beat in beats:
                        yield beat
                yield Comment(self._resumed())
        except ApiError as error:
            self._fail(error)
            raise
        finally:
            self._close()

    async def whole(self) -> Whole:
        """The answer to a request that is no stream."""
        try:
            while True:
                try:
                    found = await self._read()
                except Broken as error:
                    self._judge(error)
                    await self._resume(error)
                    continue
                for each in self._told:
                    each.answered(found.status)
                return found
        except ApiError as error:
            self._fail(error)
            raise
        finally:
            self._close()

    def close(self) -> None:
        """The caller has gone: the head is to stop. Safe from any thread and more than once."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close)

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._hold.hang_up()
        for each in self._told:
            each.end()

    def _end(self) -> None:
        self._closed = True
        self._hold.end()
        for each in self._told:
            each.done()

    def _taken(self, status: int) -> None:
        for each in self._told:
            each.taken(self.launch)
            each.answered(status)

    def _fail(self, error: ApiError) -> None:
        for each in self._told:
            each.failed(error)

    def _heard(self, data: bytes) -> None:
        for each in self._told:
            each.heard(data)

    async def _read(self) -> Whole:
        """Broken when another head has to go on."""
        answer = self._hold.answer
        assert answer is not None
        if not answer.is_stream:
            body = await answer.read()
            self._heard(body)
            self._end()
            return Whole(answer.status, body, dict(answer.headers))
        found: Whole | None = None
        async with aclosing(self._follow()) as blocks:
            async for block in blocks:
                if isinstance(block, Event) and block.data != DONE:
                    found = Whole(_status(block), block.data)
        if found is None:
            raise self._broken("nothing came before [DONE]")
        return found

    async def _follow(self) -> AsyncGenerator[Comment | Event, None]:
        """Blocks of the head that has it now; Broken when another one has to go on."""
        answer = self._hold.answer
        assert answer is not None
        reader = BlockReader()
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                for block in reader.feed(chunk):
                    if isinstance(block, Comment):
                        yield block
                        await self._look_elsewhere(block)
                    elif self._take(block):
                        if block.data == DONE:
                            self._end()
                        yield block
                        if self._closed:
                            return
        raise self._broken("the stream ended without [DONE]")

    def _take(self, event: Event) -> bool:
        """Note it. False where nothing of it is for the caller; Broken where the engine gave up."""
        if b'"code":"engine_over"' in event.data[-200:]:
            raise self._broken("the engine has ended")
        try:
            self._hold.journal.take(event)
        except (ValueError, msgspec.DecodeError) as error:
            text = _("The answer came in a form that cannot be read.")
            raise ApiError(text, status=502) from error
        if event.lines and event.data != DONE:
            self._heard(event.data)
        return bool(event.lines)

    async def _look_elsewhere(self, comment: Comment) -> None:
        """In a pause: Broken when somebody else is ready to go on at once."""
        here, journal = self._hold.target, self._hold.journal
        if comment.line != PAUSED or here is None or (journal.begun and not journal.resumable):
            return
        for target in await self._hold.others():
            if target.ready and target.launch != here.launch:
                raise self._broken(f"it pauses, and {target.launch} is ready", elsewhere=True)

    def _judge(self, error: Broken) -> None:
        """Raise what cannot be made good."""
        journal = self._hold.journal
        if self._closed or (journal.begun and not journal.resumable):
            raise error
        about = {"request_id": self._hold.request.id}
        logger.warning("An answer broke off: %s", error.cause, extra=about)
        self._fruitless = 0 if journal.progress > self._progress else self._fruitless + 1
        self._progress = max(journal.progress, self._progress)
        if self._fruitless > FRUITLESS:
            raise error

    async def _resume(self, error: Broken) -> None:
        """Have another head go on, or the same one once it is back."""
        here = self._hold.target
        if self._fruitless > 1:
            await asyncio.sleep(PAUSE_SECONDS * 2**self._fruitless)
        targets = await self._hold.others()
        launch = here.launch if here else ""
        if error.elsewhere:
            targets = [target for target in targets if target.launch != launch]
        # Where it was it may still be known.
        targets.sort(key=lambda target: (not target.ready, target.launch != launch))
        await self._hold.find(targets)
        for each in self._told:
            each.taken(self.launch)

    def _resumed(self) -> bytes:
        target = self._hold.target
        if target is None or target.model == self._model:
            return b": resumed"
        self._model = target.model
        return b": resumed by " + target.model.encode()

    def _broken(self, cause: str, *, elsewhere: bool = False) -> Broken:
        assert self._hold.target is not None
        error = broken(self._hold.target, cause)
        error.elsewhere = elsewhere
        return error


async def _beats(work: Coroutine[Any, Any, None]) -> AsyncGenerator[Comment, None]:
    """`: waiting` every few seconds until it is done: callers and proxies give up on silence."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=BEAT_SECONDS))[0]:
            yield Comment(b": waiting")
        task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})


def _status(event: Event) -> int:
    for mark in event.marks:
        if mark.startswith(b": status "):
            return int(mark[len(b": status ") :])
    return 200
