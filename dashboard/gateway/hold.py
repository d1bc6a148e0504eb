"""Which head has an answer now, and how another one gets it."""

import asyncio
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from dashboard import leaving
from dashboard.gateway.directory import current_targets, outstanding
from dashboard.gateway.journal import Journal
from dashboard.gateway.routes import NotReady, Target
from dashboard.gateway.upstream import DROP_AGAIN, Answer, Broken, ask, broken, drop, nobody

WAIT_SECONDS = 120.0
"""How long an answer waits for a head that begins it, or goes on with it."""
PAUSE_SECONDS = 0.15
"""Between two looks for one."""
BUSY = (b'"queue_full"', b'"memory_low"')
"""Codes of refusals that are the caller's to know."""
HEADERS_SECONDS = 10.0
"""For a head to take an answer over."""

_dropping: set[asyncio.Task[None]] = set()


@dataclass(frozen=True)
class Request:
    """What a caller wants, as it came."""

    route: str
    path: str
    body: bytes
    stream: bool
    id: str
    key: str = ""
    """What its prompt begins with."""
    traceparent: str = ""
    """The caller's own trace (W3C Trace Context), where it has one."""


class Hold:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.journal = Journal(request.path, request.body)
        self.target: Target | None = None
        self.answer: Answer | None = None
        self._reader = uuid.uuid4().hex
        self._before: Target | None = None
        """Who had it before and may still be at it."""

    async def find(self, targets: Sequence[Target]) -> Answer:
        """The first head that takes it, looked for again and again up to a deadline.

        Raises Broken where none does, NotReady where none is on its way.
        """
        first = self.answer is None
        self._before = self.target or self._before
        self._let_go()
        deadline = time.monotonic() + WAIT_SECONDS
        refusal: Broken | None = None
        while True:
            for target in targets:
                try:
                    answer = await self._ask(target, first=first)
                except Broken as error:
                    refusal = error
                    continue
                self.answer = answer
                self._drop_before(target)
                return answer
            if time.monotonic() >= deadline:
                raise refusal or nobody(self.request.route)
            await asyncio.sleep(PAUSE_SECONDS)
            targets = await self._on_their_way(deadline)

    async def attach(self, target: Target, *, orphan: bool) -> Answer:
        """Take up what its head still has. `orphan`: unless somebody reads it."""
        path = f"/streams/{self.request.id}" + ("?orphan=1" if orphan else "")
        stream = self.request.id
        answer = await ask(
            target,
            path,
            None,
            stream=True,
            request_id=stream,
            reader=self._reader,
            method="GET",
        )
        if answer.is_stream:
            self.answer = answer
            self._take(target)
        return answer

    async def others(self) -> list[Target]:
        """Who answers, as far as is known."""
        try:
            return await current_targets(self.request.route, self.request.key)
        except NotReady:
            return []

    def end(self) -> None:
        """The answer is complete."""
        self._let_go()

    def hang_up(self) -> None:
        """Close the connection, and have the head abort at once instead of keeping the answer; it
        is to keep it when the caller goes because this process does."""
        target, answer = self.target, self.answer
        self._let_go()
        if target is not None and (answer is None or answer.journaled):
            self._drop(target)
        self._drop_before(target)

    async def _on_their_way(self, deadline: float) -> list[Target]:
        """NotReady when there will be none, or none in time."""
        while True:
            try:
                return await current_targets(self.request.route, self.request.key)
            except NotReady as error:
                if not error.soon or time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(self, target: Target, *, first: bool) -> Answer:
        """Broken where this head cannot take it now."""
        self._take(target)
        taken = False
        try:
            async with asyncio.timeout(WAIT_SECONDS if first else HEADERS_SECONDS):
                answer = await self._post(target)
                await self._check(target, answer, first=first)
            taken = True
            return answer
        except TimeoutError as error:
            raise broken(target, "it does not take an answer over") from error
        except asyncio.CancelledError:
            self._drop(target, DROP_AGAIN)
            raise
        finally:
            if not taken:
                self._let_go()

    async def _post(self, target: Target) -> Answer:
        request, journal = self.request, self.journal
        if journal.resumable:
            path, body = "/resume", journal.resumption()
        else:
            path, body = journal.path, journal.body
        return await ask(
            target,
            path,
            body,
            stream=request.stream,
            request_id=request.id,
            reader=self._reader,
        )

    async def _check(self, target: Target, answer: Answer, *, first: bool) -> None:
        """A head on its way up takes nothing yet; one that has much to do says so to the caller."""
        away = answer.status in (502, 503, 504)
        if away and first:
            refusal = await answer.read()
            away = not any(code in refusal for code in BUSY)
        streams = self.request.stream or self.journal.resumable
        if away or (not first and streams and not answer.is_stream):
            answer.close()
            raise broken(target, f"its head answered {answer.status}")

    def _take(self, target: Target) -> None:
        self.target = target
        outstanding[target.launch] += 1

    def _let_go(self) -> None:
        if self.answer is not None:
            self.answer.close()
        if self.target is not None:
            outstanding[self.target.launch] -= 1
            if outstanding[self.target.launch] <= 0:
                del outstanding[self.target.launch]
        self.target = None

    def _drop_before(self, target: Target | None) -> None:
        before, self._before = self._before, None
        if before is not None and (target is None or before.launch != target.launch):
            self._drop(before)

    def _drop(self, target: Target, again: Sequence[float] = ()) -> None:
        if leaving.asked():
            return
        task = asyncio.ensure_future(drop(target, self.request.id, self._reader, again))
        _dropping.add(task)
        task.add_done_callback(_dropping.discard)
