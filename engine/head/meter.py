"""What a head has measured about its requests and its steps."""

from collections.abc import Iterable

from engine.core.request import Event, Request
from engine.head.windows import Busy, Histogram, Window

# Fine at the small end: a model of 100 million parameters answers in milliseconds.
FIRST_TOKEN_BOUNDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.375, 0.5, 0.75),
    *(1.0, 1.5, 2.5, 5.0, 7.5, 10.0, 20.0, 30.0, 60.0),
)
INTER_TOKEN_BOUNDS = (
    *(0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1),
    *(0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0),
)
QUEUE_BOUNDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
)
REQUEST_BOUNDS = (
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 7.5),
    *(10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 120.0, 300.0, 600.0),
)


class Meter:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start over with nothing measured."""
        self.ttft = Window(30.0)
        self.itl = Window(30.0)
        self.tokens = Window(1.0)
        self.rows = Window(1.0)
        self.busy = Busy(1.0)
        self.first_token = Histogram(FIRST_TOKEN_BOUNDS)
        self.inter_token = Histogram(INTER_TOKEN_BOUNDS)
        self.queue = Histogram(QUEUE_BOUNDS)
        self.duration = Histogram(REQUEST_BOUNDS)
        self._prompts, self._cached = Window(30.0), Window(30.0)
        self._last: dict[str, float] = {}
        """Open requests that have been seen, and when each got its last token."""
        self._elsewhere: set[str] = set()
        """Those of them that began under another head: when they arrived there is not known."""

    @property
    def prefix_hits(self) -> float | None:
        prompts = self._prompts.total()
        return self._cached.total() / prompts if prompts else None

    def stepped(self, rows: int) -> None:
        """A step is on its way."""
        self.rows.add(rows)
        self.busy.begin()

    def rested(self) -> None:
        """None is."""
        self.busy.end()

    def record(self, events: Iterable[Event], now: float) -> None:
        """Once a step. `now` is on the clock of the requests' `arrived_at`."""
        sampled = 0
        for event in events:
            request = event.request
            last = self._last.get(request.id)
            if last is None:
                self._admit(request)
            if event.token is not None:
                sampled += 1
                self._record_token(request, last, now)
            self._last[request.id] = now
        if sampled:
            self.tokens.add(sampled)

    def ended(self, request: Request, now: float) -> None:
        """Nothing more will be told to who reads it. What was never seen here counts nowhere."""
        if self._last.pop(request.id, None) is None:
            return
        if request.id in self._elsewhere:
            self._elsewhere.remove(request.id)
        elif request.finish in ("stop", "length"):
            self.duration.add((request.last_token_at or now) - request.arrived_at)

    def _admit(self, request: Request) -> None:
        if request.admitted_at is not None:
            self.queue.add(max(0.0, request.admitted_at - request.arrived_at))
        if request.cached_tokens is not None:
            self._prompts.add(len(request.prompt))
            self._cached.add(request.cached_tokens)

    def _record_token(self, request: Request, last: float | None, now: float) -> None:
        if last is not None:
            self.itl.add(now - last)
            self.inter_token.add(now - last)
        elif len(request.emitted) > 1:
            self._elsewhere.add(request.id)
        else:
            seconds = now - request.arrived_at
            self.ttft.add(seconds)
            self.first_token.add(seconds)
