"""One rule over one series, judged again and again. Pure.

A rule holds when its value is beyond the threshold, and is over when it is back behind the clear
threshold; between the two nothing changes. An absent value is no value: it neither fires nor
clears. Time is counted in what was really watched: while nobody evaluated, nothing is concluded.
"""

from dataclasses import dataclass, replace
from typing import Literal

Phase = Literal["quiet", "pending", "firing"]
Transition = Literal["begins", "fires", "drops", "resolves"]

LONGEST_STEP = 30.0
"""Seconds between two evaluations; longer means that nobody was watching meanwhile."""
PATIENCE = 600.0
"""Seconds for which a condition that has not fired yet may go unseen before it is forgotten."""


@dataclass(frozen=True)
class Terms:
    """`clear` lies on the harmless side of `threshold`, or on it."""

    threshold: float
    clear: float
    above: bool = True
    for_seconds: float = 0.0
    clear_seconds: float = 0.0

    def holds(self, value: float) -> bool:
        return value > self.threshold if self.above else value < self.threshold

    def over(self, value: float) -> bool:
        return not self.holds(value) and (
            value <= self.clear if self.above else value >= self.clear
        )


@dataclass(frozen=True)
class Observation:
    """`value` is None when it is absent, with its reason. Where a rule does not apply (no request
    waits, so a full cache is nobody's trouble) its condition is over, whatever the value."""

    value: float | None
    applies: bool = True
    reason: str = ""


@dataclass(frozen=True)
class State:
    phase: Phase = "quiet"
    held: float = 0.0
    """Seconds for which the condition was seen to hold."""
    calm: float | None = None
    """Of one that fires: the seconds for which it was seen to be over; None while it is not."""
    unseen: float | None = None
    """Seconds without a value; None when the last evaluation had one."""
    seen: float | None = None
    """When it was last evaluated, in Unix seconds."""


QUIET = State()


def judge(
    terms: Terms, observation: Observation, state: State, now: float
) -> tuple[State, Transition | None]:
    watched = _watched(state, now)
    state = replace(_after_absence(state, now), seen=now)
    value = observation.value
    if observation.applies and value is None:
        return _unseen(state, watched)
    if state.unseen is not None:
        state, watched = replace(state, unseen=None), 0.0
    if state.phase == "firing":
        over = not observation.applies or (value is not None and terms.over(value))
        return _while_firing(terms, state, over, watched)
    holds = observation.applies and value is not None and terms.holds(value)
    return _while_waiting(terms, state, holds, watched)


def _watched(state: State, now: float) -> float:
    """Seconds since the last evaluation; none when the clock went back or nobody looked."""
    passed = 0.0 if state.seen is None else now - state.seen
    return passed if 0.0 < passed <= LONGEST_STEP else 0.0


def _after_absence(state: State, now: float) -> State:
    """What had begun before a time without evaluation begins anew; what fires goes on."""
    if state.seen is None or now - state.seen <= LONGEST_STEP:
        return state
    return replace(state, held=0.0, calm=None)


def _unseen(state: State, watched: float) -> tuple[State, Transition | None]:
    state = replace(state, unseen=(state.unseen or 0.0) + watched)
    if state.phase == "pending" and state.unseen is not None and state.unseen > PATIENCE:
        return State(seen=state.seen), "drops"
    return state, None


def _while_waiting(
    terms: Terms, state: State, holds: bool, watched: float
) -> tuple[State, Transition | None]:
    if not holds:
        return State(seen=state.seen), "drops" if state.phase == "pending" else None
    held = state.held + watched if state.phase == "pending" else 0.0
    if held >= terms.for_seconds:
        return State("firing", held=held, seen=state.seen), "fires"
    begins: Transition | None = "begins" if state.phase == "quiet" else None
    return replace(state, phase="pending", held=held), begins


def _while_firing(
    terms: Terms, state: State, over: bool, watched: float
) -> tuple[State, Transition | None]:
    if not over:
        return replace(state, held=state.held + watched, calm=None), None
    calm = 0.0 if state.calm is None else state.calm + watched
    if calm >= terms.clear_seconds:
        return State(seen=state.seen), "resolves"
    return replace(state, calm=calm), None
