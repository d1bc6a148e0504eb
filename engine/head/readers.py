"""Who reads which answer, and what they are told."""

import time
from collections.abc import Iterable

from engine.core.request import Event, Request
from engine.core.scheduler import Scheduler
from engine.head.answer import Answer, Generation, Notice
from engine.head.meter import Meter


class Readers:
    """The open answers. Everything that survives an epoch of them is here and in their requests."""

    def __init__(self, scheduler: Scheduler, meter: Meter) -> None:
        self.resumed = 0
        """Answers that went on after a fault."""
        self._scheduler = scheduler
        self._meter = meter
        self._held: dict[str, tuple[Answer, Generation]] = {}
        self._paused: set[str] = set()
        """Requests of which nothing was heard since the last fault."""

    def __len__(self) -> int:
        return len(self._held)

    def add(self, request: Request, answer: Answer, generation: Generation) -> None:
        self._held[request.id] = (answer, generation)

    def drop(self, generation: Generation) -> None:
        """End what is still open of a generation nobody reads any more."""
        for request in generation.requests:
            if self._held.pop(request.id, None) is not None:
                self._paused.discard(request.id)
                self._scheduler.end(request.id, "abort")
                self._meter.ended(request, time.monotonic())

    def pause(self) -> None:
        """Tell everyone that it takes a while."""
        for _answer, generation in self._held.values():
            if not generation.paused:
                generation.put(Notice("paused"))
        self._paused = set(self._held)

    def deliver(self, events: Iterable[Event]) -> bool:
        """Hand text to its readers. True when a stop string ended a request, freeing its blocks."""
        freed = False
        for event in events:
            held = self._held.get(event.request.id)
            if held is None:
                continue
            answer, generation = held
            self._go_on(event, generation)
            delta = answer.take(event)
            if delta.finish is not None:
                del self._held[event.request.id]
                if event.finish is None:
                    self._scheduler.end(event.request.id, delta.finish)
                    freed = True
                self._meter.ended(event.request, time.monotonic())
            generation.put(delta)
        return freed

    def _go_on(self, event: Event, generation: Generation) -> None:
        if event.request.id not in self._paused:
            return
        self._paused.remove(event.request.id)
        if event.token is not None:
            self.resumed += len(event.request.emitted) > 1
            if generation.paused:
                generation.put(Notice("resumed"))
