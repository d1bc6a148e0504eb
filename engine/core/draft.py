"""A step being filled, and its rows once they are on their way."""

from dataclasses import dataclass, field

from engine.core.sequence import Sequence
from engine.protocol.steps import Admit, Row, Step, step_digest


@dataclass(slots=True)
class Flown:
    """One row of a step on its way: the sequence's tokens are computed up to `until`."""

    sequence: Sequence
    until: int
    sample: bool


@dataclass(slots=True)
class Draft:
    budget: int
    """Tokens left to give away."""
    rows_left: int
    picked: list[tuple[Sequence, int]] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return self.budget <= 0 or self.rows_left <= 0

    def pick(self, sequence: Sequence, tokens: int) -> None:
        self.picked.append((sequence, tokens))
        sequence.in_flight = True
        self.budget -= tokens
        self.rows_left -= 1

    def top_up(self) -> None:
        """Give what is left of the budget to the prompts that were picked, in order."""
        for index, (sequence, count) in enumerate(self.picked):
            more = min(sequence.pending - count, self.budget)
            self.picked[index] = (sequence, count + more)
            self.budget -= more

    def launch(self, epoch: int, n: int, released: list[int]) -> tuple[Step, list[Flown]]:
        """The step to send, and what to remember of it; the sequences count as computed."""
        rows: list[Row] = []
        flown: list[Flown] = []
        for sequence, count in self.picked:
            row = _row(sequence, count)
            rows.append(row)
            flown.append(Flown(sequence, sequence.computed, row.sample))
        mirrors = [(f.sequence.id, f.until, len(f.sequence.table)) for f in flown]
        digest = step_digest(epoch, n, mirrors)
        return Step(epoch=epoch, n=n, rows=rows, released=released, digest=digest), flown


def _row(sequence: Sequence, count: int) -> Row:
    start = sequence.computed
    sequence.computed += count
    blocks, sequence.unsent = sequence.unsent, []
    admit = None if sequence.introduced else _admit(sequence)
    sequence.introduced = True
    return Row(
        seq=sequence.id,
        tokens=sequence.tokens[start : sequence.computed],
        start=start,
        new_blocks=blocks,
        sample=sequence.computed == len(sequence.tokens),
        admit=admit,
    )


def _admit(sequence: Sequence) -> Admit:
    request = sequence.request
    history = tuple(request.history) if request.sampling.needs_history else ()
    return Admit(request.sampling, len(request.prompt), history)
