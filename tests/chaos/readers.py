"""People who read: streams that are always open, each compared with its undisturbed answer."""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.chaos.asking import PATIENCE, Answer, Asker
from tests.chaos.references import Reference


@dataclass
class Tally:
    """What became of the requests."""

    requests: int = 0
    lost: int = 0
    repeated: int = 0
    unterminated: int = 0
    failed: int = 0
    reconnected: int = 0
    refused: int = 0
    tokens: int = 0
    notices: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.lost or self.repeated or self.unterminated or self.failed)


class Reader:
    """One stream after another, on its own thread. `moved` is when its texts came."""

    def __init__(self, asker: Asker, questions: Sequence[Reference], together: "Readers") -> None:
        self.moved: list[float] = []
        self.asked = 0.0
        """When its open question was put."""
        self._asker = asker.with_notice(self._note)
        self._questions = questions
        self._together = together
        self.thread = threading.Thread(target=self._read, daemon=True)

    def _note(self) -> None:
        self.moved.append(time.monotonic())

    def _read(self) -> None:
        for reference in itertools.cycle(self._questions):
            if self._together.closing.is_set():
                return
            self.asked = time.monotonic()
            self._together.count(reference, self._asker.ask(reference.body))


class Readers:
    def __init__(
        self, asker: Asker, references: Sequence[Reference], count: int, rng: random.Random
    ) -> None:
        self.tally = Tally()
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self.readers = [
            Reader(asker, rng.sample(references, len(references)), self) for _ in range(count)
        ]

    def start(self) -> None:
        for reader in self.readers:
            reader.thread.start()

    def finish(self) -> None:
        """Nobody asks anew; what is open is read to its end. An endless one is counted as such."""
        self.closing.set()
        deadline = time.monotonic() + PATIENCE + 10
        for reader in self.readers:
            reader.thread.join(max(0.0, deadline - time.monotonic()))
            if reader.thread.is_alive():
                self.tally.unterminated += 1
                self.tally.problems.append("a reader never came to an end")

    def all_moved_since(self, moment: float) -> bool:
        return all(it.moved and it.moved[-1] > moment for it in self.readers)

    def all_asked_since(self, moment: float) -> bool:
        return all(it.asked > moment for it in self.readers)

    def count(self, reference: Reference, answer: Answer) -> None:
        lost, repeated = reference.faults_of(answer)
        with self._lock:
            tally = self.tally
            tally.requests += 1
            tally.tokens += answer.usage.get("completion_tokens", len(answer.chunks))
            tally.lost += lost
            tally.repeated += repeated
            tally.unterminated += not answer.ended
            tally.failed += bool(answer.failure)
            tally.reconnected += answer.reconnected
            tally.refused += answer.refused
            tally.notices.update(it for it in answer.comments if it in ("paused", "resumed"))
            if lost or repeated or answer.failure:
                tally.problems.append(_problem(reference, answer, lost, repeated))


def _problem(reference: Reference, answer: Answer, lost: int, repeated: int) -> str:
    expected, got = "".join(reference.chunks), answer.text
    same = next(
        (at for at, (a, b) in enumerate(zip(expected, got, strict=False)) if a != b),
        min(len(expected), len(got)),
    )
    begin = max(0, same - 20)
    return (
        f"{answer.request}: {lost} lost, {repeated} repeated, {answer.failure or 'no failure'}; "
        f"expected {expected[begin : same + 40]!r}, got {got[begin : same + 40]!r}; "
        f"{answer.comments[-6:]}"
    )
