"""A step being filled, and its rows once they are on their way."""

from dataclasses import dataclass, field

from engine.config import BLOCK_SIZE
from engine.core.flight import Flight, targets
from engine.core.sequence import Sequence
from engine.protocol.steps import Admit, Row, Step, step_digest


@dataclass(slots=True)
class Draft:
    """Rows are in the order of being picked, those that decode first."""

    budget: int
    """Tokens left to give away."""
    rows_left: int
    decodes: list[Sequence] = field(default_factory=list)
    prompts: list[tuple[Sequence, int]] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return self.budget <= 0 or self.rows_left <= 0

    @property
    def empty(self) -> bool:
        return not (self.decodes or self.prompts)

    def decode(self, sequences: list[Sequence]) -> None:
        """The only rows of one token each whose sequences have all but that one computed."""
        self.decodes = sequences
        self.budget -= len(sequences)
        self.rows_left -= len(sequences)

    def pick(self, sequence: Sequence, tokens: int) -> None:
        self.prompts.append((sequence, tokens))
        self.budget -= tokens
        self.rows_left -= 1

    def top_up(self) -> None:
        """Give what is left of the budget to the prompts that were picked, in order."""
        for index, (sequence, count) in enumerate(self.prompts):
            more = min(sequence.pending - count, self.budget)
            self.prompts[index] = (sequence, count + more)
            self.budget -= more

    def launch(self, epoch: int, n: int, released: list[int], now: float) -> tuple[Step, Flight]:
        """The step to send, and what to remember of it; the sequences count as computed."""
        rows = [Row(s.id, [s.last], s.computed, s.unsent, True) for s in self.decodes]
        for sequence in self.decodes:
            sequence.computed += 1
            if sequence.unsent:
                sequence.unsent = []
        mirrors = [(s.id, s.computed, s.room // BLOCK_SIZE) for s in self.decodes]
        starts: list[tuple[Sequence, int]] = []
        for sequence, count in self.prompts:
            starts.append((sequence, sequence.computed))
            rows.append(_prompt_row(sequence, count))
            mirrors.append((sequence.id, sequence.computed, len(sequence.table)))
        digest = step_digest(epoch, n, mirrors)
        step = Step(epoch=epoch, n=n, rows=rows, released=released, digest=digest)
        return step, Flight(n, now, self.decodes, starts)


def _prompt_row(sequence: Sequence, count: int) -> Row:
    start = sequence.computed
    sequence.computed += count
    admit = None if sequence.introduced else _admit(sequence)
    sequence.introduced = True
    blocks, sequence.unsent = sequence.unsent, []
    return Row(
        seq=sequence.id,
        tokens=sequence.tokens[start : sequence.computed],
        start=start,
        new_blocks=blocks,
        sample=sequence.samples,
        admit=admit,
        targets=tuple(targets(sequence, start)),
    )


def _admit(sequence: Sequence) -> Admit:
    request = sequence.request
    history = tuple(request.history) if request.sampling.needs_history else ()
    return Admit(request.sampling, len(request.prompt), history)
