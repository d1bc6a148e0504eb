"""What a head has measured about its requests."""

from engine.core.request import Event
from engine.head.windows import Histogram, Window

TTFT_BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
ITL_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0)


class Meter:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start over with nothing measured."""
        self.ttft = Window(30.0)
        self.itl = Window(30.0)
        self.tokens = Window(1.0)
        self.ttft_histogram = Histogram(TTFT_BOUNDS)
        self.itl_histogram = Histogram(ITL_BOUNDS)
        self._last: dict[str, float] = {}

    def record(self, events: list[Event], now: float) -> None:
        """Once a step. `now` is on the clock of the requests' `arrived_at`."""
        sampled = 0
        for event in events:
            if event.token is not None:
                sampled += 1
                self._record_token(event, now)
            if event.finish is not None:
                self._last.pop(event.request.id, None)
        if sampled:
            self.tokens.add(sampled)

    def _record_token(self, event: Event, now: float) -> None:
        last = self._last.get(event.request.id)
        if last is None:
            seconds = now - event.request.arrived_at
            self.ttft.add(seconds)
            self.ttft_histogram.add(seconds)
        else:
            self.itl.add(now - last)
            self.itl_histogram.add(now - last)
        self._last[event.request.id] = now
