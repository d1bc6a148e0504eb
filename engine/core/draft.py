"""A step being filled, and its rows once they are on their way."""

from dataclasses import dataclass, field

from engine.config import BLOCK_SIZE
from engine.core.flight import Chunk, Flight
from engine.core.sequence import Sequence
from engine.protocol.steps import PENDING, Admit, Row, Step, step_digest


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

    def decode(self, sequences: list[Sequence], prompts: int) -> None:
        """The only rows of one token each whose sequences have all but that one computed; at most
        `prompts` tokens of others may follow."""
        self.decodes = sequences
        self.budget = min(self.budget - len(sequences), prompts)
        self.rows_left -= len(sequences)

    def pick(self, sequence: Sequence, tokens: int) -> None:
        self.prompts.append((sequence, tokens))
        self.budget -= tokens
        self.rows_left -= 1

    def top_up(self) -> None:
        """Give what is left of the budget to the prompts that were picked, in order."""
        for index, (sequence, count) in enumerate(self.prompts):
            more = min(sequence.unread - count, self.budget)
            self.prompts[index] = (sequence, count + more)
            self.budget -= more

    def launch(self, epoch: int, n: int, released: list[int], now: float) -> tuple[Step, Flight]:
        """The step to send, and what to remember of it; the sequences count as computed."""
        rows = [Row(s.id, [s.last], s.computed, s.unsent, True) for s in self.decodes]
        for sequence in self.decodes:
            sequence.computed += 1
            sequence.last = PENDING
            if sequence.unsent:
                sequence.unsent = []
        mirrors = [(s.id, s.computed, s.room // BLOCK_SIZE) for s in self.decodes]
        drawing, chunks = self.decodes, []
        for sequence, count in self.prompts:
            row = _prompt_row(sequence, count)
            rows.append(row)
            mirrors.append((sequence.id, sequence.computed, len(sequence.table)))
            chunks.append(
                Chunk(sequence, row.start, sequence.computed, row.sample, len(row.targets))
            )
        drawing = drawing + [chunk.sequence for chunk in chunks if chunk.samples]
        digest = step_digest(epoch, n, mirrors)
        step = Step(epoch=epoch, n=n, rows=rows, released=released, digest=digest)
        return step, Flight(n, now, drawing, chunks)


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
        targets=tuple(_targets(sequence, start)),
    )


def _targets(sequence: Sequence, start: int) -> list[int]:
    """What follows each token from `start` to what is computed, if it is prompt to be scored and
    was not scored before."""
    request = sequence.request
    until = min(sequence.computed, len(request.prompt) - 1)
    if not request.score_prompt or until <= len(request.prompt_logprobs):
        return []
    return request.prompt[start + 1 : until + 1]


def _admit(sequence: Sequence) -> Admit:
    request = sequence.request
    history = tuple(request.history) if request.sampling.needs_history else ()
    return Admit(request.sampling, len(request.prompt), history)
