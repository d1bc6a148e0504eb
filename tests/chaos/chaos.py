"""Faults in random order while people read, and the account of it."""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.asking import Asker
from tests.chaos.faults import KINDS, SAME_PLACEMENT, Mark
from tests.chaos.fleet import Fleet
from tests.chaos.leaks import leaks_of
from tests.chaos.measures import spread, waited
from tests.chaos.readers import Readers, Tally
from tests.chaos.references import Reference
from tests.chaos.waiting import wait_for

WHOLE_SECONDS = 180.0
CALM_SECONDS = (0.5, 2.5)


def tell(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def order(count: int, kinds: Sequence[str], rng: random.Random) -> list[str]:
    """Each kind as often as the others, give or take one, in random order."""
    often, rest = divmod(count, len(kinds))
    found = [*kinds] * often + rng.sample(list(kinds), rest)
    rng.shuffle(found)
    return found


@dataclass
class Wait:
    """What one fault cost: seconds to the next token, of each stream."""

    mark: Mark
    seconds: list[float]
    after_heal: list[float]
    whole: float
    """Until all was as it should be."""


@dataclass
class Account:
    """Everything that the report tells."""

    tally: Tally
    waits: list[Wait] = field(default_factory=list)
    unrepaired: list[str] = field(default_factory=list)
    blocks_leaked: int = 0
    audit: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Nothing lost, repeated, unterminated or leaked, and every fault was repaired."""
        return self.tally.clean and not (self.unrepaired or self.blocks_leaked or self.audit)


class Chaos:
    def __init__(
        self, fleet: Fleet, references: Sequence[Reference], rng: random.Random, streams: int = 8
    ) -> None:
        self._fleet = fleet
        self._rng = rng
        asker = Asker(fleet.panel.url, fleet.panel.key)
        self._readers = Readers(asker, references, streams, rng)
        self.account = Account(self._readers.tally)

    def run(self, kinds: Sequence[str]) -> Account:
        """Ends early at a fault that is not repaired: nothing after it would mean anything."""
        started = time.monotonic()
        self._readers.start()
        try:
            for number, kind in enumerate(kinds, 1):
                self._until_calm()
                wait = self._one(kind)
                self.account.waits.append(wait)
                tell(_line(f"{number}/{len(kinds)}", wait, self._readers.tally))
        except (TimeoutError, LookupError) as error:
            self.account.unrepaired.append(str(error))
            tell(f"NOT REPAIRED: {error}")
        self._readers.finish()
        leaks = leaks_of(self._fleet)
        self.account.blocks_leaked, self.account.audit = leaks.blocks, leaks.audit
        self.account.seconds = time.monotonic() - started
        return self.account

    def _until_calm(self) -> None:
        moment = time.monotonic()
        self._wait("all streams", lambda: self._readers.all_moved_since(moment))
        self._wait("a whole fleet", lambda: not self._fleet.why_not_whole(), 0.3)
        if self._fleet.fallback != "none":  # What went over to it stays there to its end.
            whole = time.monotonic()
            self._wait("new questions", lambda: self._readers.all_asked_since(whole))
        time.sleep(self._rng.uniform(*CALM_SECONDS))

    def _one(self, kind: str) -> Wait:
        mark = Mark(kind, all_moved_since=self._readers.all_moved_since)
        KINDS[kind](self._fleet, self._rng, mark)
        self._wait(f"{kind} ({mark.target}): the repair", mark.repaired)
        moment = time.monotonic()
        self._wait(
            f"{kind} ({mark.target}): every stream's next token",
            lambda: self._readers.all_moved_since(moment),
        )
        self._wait(
            f"{kind} ({mark.target}): a whole fleet",
            lambda: not self._fleet.why_not_whole(),
            0.3,
        )
        return self._measured(mark, time.monotonic())

    def _measured(self, mark: Mark, until: float) -> Wait:
        each = [waited(list(it.moved), mark.struck, until) for it in self._readers.readers]
        healed = mark.healed
        after = [end - healed for _seconds, end in each if healed is not None and end > healed]
        return Wait(mark, [seconds for seconds, _end in each], after, until - mark.struck)

    def _wait(self, what: str, done: Callable[[], bool], pause: float = 0.1) -> None:
        wait_for(what, done, WHOLE_SECONDS, self._fleet.story, pause)


def report(account: Account, **more: Any) -> dict[str, Any]:
    """One JSON object."""
    tally, waits = account.tally, account.waits
    kinds = sorted({wait.mark.kind for wait in waits})
    return {
        **more,
        "seconds": round(account.seconds, 1),
        "faults": dict(Counter(wait.mark.kind for wait in waits)),
        "faults_without_effect": sum(not wait.mark.felt for wait in waits),
        "requests": tally.requests,
        "tokens": tally.tokens,
        "tokens_lost": tally.lost,
        "tokens_repeated": tally.repeated,
        "without_terminal_event": tally.unterminated,
        "failed": tally.failed,
        "refused": tally.refused,
        "reconnected": tally.reconnected,
        "notices": dict(tally.notices),
        "blocks_leaked": account.blocks_leaked,
        "audit": account.audit,
        "unrepaired": account.unrepaired,
        "fault_to_next_token_seconds": {
            "same placement": _summary([it for it in waits if it.mark.kind in SAME_PLACEMENT]),
            "all": _summary(waits),
            **{kind: _summary([it for it in waits if it.mark.kind == kind]) for kind in kinds},
        },
        "stopped_rank_detected_seconds": spread(_detections(waits, "rank-stopped")),
        "lost_cable_told_seconds": spread(_detections(waits, "cable-gone")),
        "problems": tally.problems[:20],
        "clean": account.clean,
    }


def _detections(waits: Sequence[Wait], kind: str) -> list[float]:
    return [
        it.mark.detected for it in waits if it.mark.kind == kind and it.mark.detected is not None
    ]


def _summary(waits: Sequence[Wait]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "first_stream": spread([min(it.seconds) for it in waits]),
        "each_stream": spread([seconds for it in waits for seconds in it.seconds]),
        "whole_again": spread([it.whole for it in waits]),
    }
    after = [seconds for it in waits for seconds in it.after_heal]
    return found | ({"each_stream_after_heal": spread(after)} if after else {})


def _line(place: str, wait: Wait, tally: Tally) -> str:
    mark = wait.mark
    parts = [f"{place} {mark.kind} ({mark.target})"]
    parts.append(f"next token {min(wait.seconds):.2f} s, last stream {max(wait.seconds):.2f} s")
    if wait.after_heal:
        parts.append(f"{max(wait.after_heal):.2f} s after the repair")
    if mark.detected is not None:
        parts.append(f"told after {mark.detected:.2f} s")
    if not mark.felt:
        parts.append("WITHOUT EFFECT")
    parts.append(f"whole after {wait.whole:.1f} s")
    wrong = tally.lost + tally.repeated + tally.unterminated + tally.failed
    parts.append(
        f"{tally.requests} answers, {tally.lost} tokens lost, {tally.repeated} repeated, "
        f"{tally.failed} failed" + (" !" if wrong else "")
    )
    return "; ".join(parts)


def as_json(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=1)
