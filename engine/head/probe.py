"""Tokens that a head asks for itself, to see whether they come. They count nowhere.

The rehearsal, before anybody may ask; and a canary, one token whenever nobody has for a while.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from engine.core.counters import Counters
from engine.core.request import Event, Request
from engine.core.scheduler import Scheduler
from engine.errors import DeadlineError, RankError
from engine.errors import gettext_noop as _
from engine.head.answer import Generation
from engine.head.deadlines import Deadlines
from engine.head.readers import Readers
from engine.head.rehearsal import rehearsal_answer, rehearsal_prompt
from engine.head.wanted import Wanted
from engine.text.chat import ChatEncoder
from engine.text.tokenizer import TextTokenizer

Ask = Callable[[list[list[int]], Wanted], Generation]

CANARY = Wanted(temperature=0.0, max_tokens=1, ignore_eos=True)


class Probe:
    def __init__(
        self,
        ask: Ask,
        scheduler: Scheduler,
        readers: Readers,
        chat: ChatEncoder,
        tokenizer: TextTokenizer,
        deadlines: Deadlines,
    ) -> None:
        self.rehearsed = False
        self.seconds: float | None = None
        """What the last canary took."""
        self._ask = ask
        self._scheduler = scheduler
        self._readers = readers
        self._chat = chat
        self._tokenizer = tokenizer
        self._deadlines = deadlines
        self._own: Generation | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def singing(self) -> bool:
        """Whether a canary is on its way."""
        return self.rehearsed and self._own is not None

    def rehearse(self) -> None:
        """Ask the first question."""
        prompt = rehearsal_prompt(self._chat, self._tokenizer, self._scheduler.capacity)
        answer = rehearsal_answer(prompt, self._scheduler.capacity)
        self._own = self._ask([prompt], answer)

    def end_rehearsal(self) -> None:
        """Forget that it was; raises RankError when it failed."""
        if self._own is not None and (request := self._own.requests[0]).finish == "error":
            raise RankError(_("The first answer failed: %(reason)s"), reason=request.error)
        self._scheduler.counters = Counters()
        self._own, self.rehearsed = None, True

    def rest(self, wake: Callable[[], None]) -> None:
        """Nothing is left to do; `wake` brings the loop to look for work."""
        self.check(time.monotonic())
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._deadlines.resting, self._sing, wake)

    def check(self, now: float) -> None:
        """Look after the canary; raises EngineError when it failed or does not come."""
        if not self.singing or self._own is None:
            return
        request = self._own.requests[0]
        if request.finish == "error":
            raise RankError(_("An idle engine drew no token: %(reason)s"), reason=request.error)
        if request.finish is not None:
            self.seconds = (request.last_token_at or now) - request.arrived_at
            self._own = None
            _uncount(self._scheduler.counters, request)
        elif now - request.arrived_at > self._deadlines.canary:
            raise DeadlineError(
                _("An idle engine drew no token within %(seconds)s s."),
                seconds=f"{self._deadlines.canary:g}",
            )

    @property
    def counters(self) -> Counters:
        """What others asked. A total that fell again would read as one that began anew."""
        if not self.rehearsed:
            return Counters()
        counters = replace(self._scheduler.counters)
        if self._own is not None:
            _uncount(counters, self._own.requests[0])
        return counters

    def without_own(self, events: list[Event]) -> list[Event]:
        if self._own is None:
            return events
        return [event for event in events if event.request is not self._own.requests[0]]

    def stop(self) -> None:
        """The epoch is over, and whatever was asked."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._own is not None:
            request, singing = self._own.requests[0], self.singing
            self._readers.drop(self._own)
            if singing:
                _uncount(self._scheduler.counters, request)
            self._own = None

    def _sing(self, wake: Callable[[], None]) -> None:
        self._timer = None
        scheduler = self._scheduler
        if self._own is not None or scheduler.running or scheduler.waiting:
            return
        prompt = (self._tokenizer.bos_ids or self._tokenizer.encode("Hello"))[:1]
        self._own = self._ask([prompt], CANARY)
        asyncio.get_running_loop().call_later(self._deadlines.canary + 0.1, wake)
        wake()


def _uncount(counters: Counters, request: Request) -> None:
    """As if the request had never been."""
    counters.aborted -= request.finish == "abort"
    counters.failed -= request.finish == "error"
    counters.cut -= request.finish == "length"
    counters.stopped -= request.finish == "stop"
    counters.generated_tokens -= len(request.emitted)
    if request.cached_tokens is not None:
        counters.prompt_tokens -= len(request.prompt)
        counters.cached_tokens -= request.cached_tokens
        counters.steps -= 1
