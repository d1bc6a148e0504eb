"""Rounds in which the contestants take turns. Only one of them works at any time."""

import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from engine.bench.compare.contestant import Contestant, Lost
from engine.bench.compare.entrants import MACHINE, Entrant
from engine.bench.compare.neighbour import busy_core
from engine.bench.compare.players import asks
from engine.bench.compare.spread import Spread
from engine.bench.compare.works import Sizes, Work
from engine.errors import DeadlineError

OPEN_SECONDS = 1800.0
MULTIPLY_ROWS = (1, 4, 8, 32, 1024)
KINDS = ("int8", "quantized", "fp32")
PATIENCE = 20.0
"""Seconds of one product, beyond which larger ones are not tried: where a processor lacks the
instructions, torch's own int8 product is very slow."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What all of them are given."""

    gguf: str
    folder: str
    threads: int
    device: str
    sizes: Sizes
    logs: Path


class Place(msgspec.Struct, kw_only=True):
    """A contestant's in the contest, with all that was seen of it."""

    entrant: Entrant
    opened: asks.Opened | None = None
    how: str = ""
    gone: str = ""
    """Why it no longer takes part; empty while it does."""
    values: dict[str, list[float | None]] = {}
    """By figure, one a round; None where the round had none."""
    reasons: dict[str, str] = {}
    """By work: why a value is missing."""
    peak_bytes: int | None = None
    resting_cpu: float = 0.0
    """Seconds of processor time while others worked, ..."""
    resting: float = 0.0
    """... in so many."""

    def median(self, figure: str) -> float | None:
        spread = Spread.of([it for it in self.values.get(figure, []) if it is not None])
        return spread.median if spread else None


class Contest:
    """Use as a context manager: everybody has gone when it is left."""

    def __init__(self, entrants: list[Entrant], setting: Setting) -> None:
        self.places = [Place(entrant=each) for each in entrants]
        self.machine: dict[str, list[float]] = {}
        """Seconds by what the machine did, one a round."""
        self.core: int | None = None
        """The neighbour's."""
        self._setting = setting
        self._running: dict[str, Contestant] = {}
        self._machine: Contestant | None = None

    def __enter__(self) -> "Contest":
        return self

    def __exit__(self, *_: object) -> None:
        for contestant in [*self._running.values(), *filter(None, [self._machine])]:
            contestant.close()

    def open(self) -> None:
        """Everybody loads, one after another, finds its best settings and rests."""
        for place in self.places:
            self._trying(place, "open", partial(self._open, place))

    def run(self, works: list[Work], rounds: int, seconds: float = math.inf) -> None:
        """All works in every round, so that what is short of time has fewer rounds of each. After
        `seconds` no other work is begun."""
        last = time.monotonic() + seconds
        for number in range(rounds):
            for work in works:
                if number % work.every:
                    continue
                if time.monotonic() > last:
                    _say(f"There is no time left for {work.name}, round {number + 1}.")
                    continue
                _say(f"{work.name}, round {number + 1} of {rounds}")
                for place in self.places:
                    found = self._turn(place, work, number)
                    for figure in work.figures:
                        place.values.setdefault(figure.name, []).append(found.get(figure.name))

    def measure_machine(self, shapes: list[tuple[int, int]], rows: tuple[int, ...]) -> None:
        """Once before and once after the contest, so that both are of one hour. Where it cannot be
        measured the contest goes on."""
        try:
            self._measure_machine(shapes, rows)
        except (Lost, DeadlineError) as error:
            _say(f"{MACHINE.key}: {error}")

    def _measure_machine(self, shapes: list[tuple[int, int]], rows: tuple[int, ...]) -> None:
        machine = self._machine
        if machine is None:
            machine = self._machine = self._start(MACHINE, "machine")
            machine.ask(self._first_ask(MACHINE, 0), asks.Opened, OPEN_SECONDS)
        machine.wake()
        threads = self._setting.threads
        self._note("bandwidth", machine.ask(asks.Bandwidth(threads=threads), asks.Timed, 300.0))
        for kind in KINDS:
            seconds = 0.0
            for count, before in zip(rows, (rows[0], *rows), strict=False):
                if seconds / before * count > PATIENCE:
                    break
                ask = asks.Multiply(threads=threads, rows=count, shapes=shapes, kind=kind)
                timed = machine.ask(ask, asks.Timed, 300.0)
                self._note(f"{kind}-{count}", timed)
                seconds = timed.seconds
        machine.rest()

    def _note(self, what: str, timed: asks.Timed) -> None:
        value = timed.tokens / timed.seconds if what == "bandwidth" else timed.seconds
        self.machine.setdefault(what, []).append(value)

    def _open(self, place: Place) -> None:
        _say(f"{place.entrant.key} loads")
        contestant = self._start(place.entrant, place.entrant.key)
        self._running[place.entrant.key] = contestant
        ask = self._first_ask(place.entrant, self._setting.sizes.kv_tokens)
        place.opened = contestant.ask(ask, asks.Opened, OPEN_SECONDS)
        place.how = place.opened.how
        try:
            tuned = contestant.ask(asks.Tune(), asks.Tuned, OPEN_SECONDS)
        except Lost:
            return  # it has nothing to tune
        finally:
            contestant.rest()
        place.how = tuned.how
        place.opened = asks.Opened(
            name=place.opened.name,
            how=tuned.how,
            works=place.opened.works,
            step_bytes=tuned.step_bytes,
            kv_token_bytes=tuned.kv_token_bytes,
        )

    def _turn(self, place: Place, work: Work, number: int) -> dict[str, float]:
        """Its values; what is missing has its reason in `place`."""
        if place.gone or place.opened is None:
            return {}
        if work.needs not in place.opened.works:
            place.reasons[work.name] = "It does not do this."
            return {}
        do = {"ask": self._ask, "noisy": self._noisy, "fresh": self._fresh}[work.kind]
        others = [other for other in self.places if other is not place and not other.gone]
        before = {other.entrant.key: self._cpu(other) for other in others}
        began = time.monotonic()
        found = self._trying(place, work.name, partial(do, place, work, number)) or {}
        for other in others:
            other.resting += time.monotonic() - began
            other.resting_cpu += self._cpu(other) - before[other.entrant.key]
        return found

    def _cpu(self, place: Place) -> float:
        running = self._running.get(place.entrant.key)
        return running.cpu_seconds if running else 0.0

    def _trying(
        self, place: Place, what: str, do: Callable[[], dict[str, float] | None]
    ) -> dict[str, float] | None:
        """A refusal costs a value; an end, or no answer in time, the rest of the contest."""
        try:
            return do()
        except (Lost, DeadlineError) as error:
            place.reasons[what] = str(error)
            _say(f"{place.entrant.key}: {error}")
            running = self._running.get(place.entrant.key)
            if place.opened is None or isinstance(error, DeadlineError) or not _alive(running):
                place.gone = str(error)
                self._running.pop(place.entrant.key, None)
                if running is not None:
                    running.close()
            return None

    def _ask(self, place: Place, work: Work, number: int) -> dict[str, float]:
        contestant = self._running[place.entrant.key]
        contestant.wake()
        try:
            ask = work.asks(number)
            if isinstance(ask, asks.Serve):
                return _serving(contestant.ask(ask, asks.Served, work.seconds))
            timed = contestant.ask(ask, asks.Timed, work.seconds)
            (figure,) = work.figures
            seconds = figure.unit == "s"
            return {figure.name: timed.seconds if seconds else timed.tokens / timed.seconds}
        finally:
            contestant.rest()

    def _noisy(self, place: Place, work: Work, number: int) -> dict[str, float]:
        contestant = self._running[place.entrant.key]
        contestant.wake()
        try:
            ask = work.asks(number)
            alone = contestant.ask(ask, asks.Timed, work.seconds)
            with busy_core() as self.core:
                noisy = contestant.ask(ask, asks.Timed, work.seconds)
        finally:
            contestant.rest()
        rate = noisy.tokens / noisy.seconds
        return {"noisy": rate, "noisy-times": alone.tokens / alone.seconds / rate}

    def _fresh(self, place: Place, work: Work, number: int) -> dict[str, float]:
        """In a process of its own, so that the one that plays on keeps its state."""
        began = time.monotonic()
        contestant = self._start(place.entrant, f"{place.entrant.key}-fresh")
        try:
            ask = self._first_ask(place.entrant, self._setting.sizes.fresh_kv_tokens)
            contestant.ask(ask, asks.Opened, work.seconds)
            found = {"load": time.monotonic() - began}
            contestant.ask(work.asks(number), asks.Timed, work.seconds)
        finally:
            contestant.close()
        if contestant.peak_bytes is not None:
            found["memory"] = contestant.peak_bytes / 1e6
        return found

    def _start(self, entrant: Entrant, name: str) -> Contestant:
        return Contestant(entrant, self._setting.threads, self._setting.logs / f"{name}.log")

    def _first_ask(self, entrant: Entrant, kv_tokens: int) -> asks.Open:
        return asks.Open(
            gguf=self._setting.gguf,
            folder=self._setting.folder,
            threads=self._setting.threads,
            device=self._setting.device,
            longest=self._setting.sizes.longest,
            kv_tokens=kv_tokens,
            settings=entrant.settings,
        )


def _serving(served: asks.Served) -> dict[str, float]:
    found = {
        "serve": served.tokens_per_second,
        "serve-ttft-p50": served.ttft_p50,
        "serve-ttft-p95": served.ttft_p95,
        "serve-itl-p50": served.itl_p50,
        "serve-itl-p95": served.itl_p95,
    }
    return {name: value for name, value in found.items() if value is not None}


def _alive(running: Contestant | None) -> bool:
    return running is not None and running.alive


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
