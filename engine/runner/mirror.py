"""The rank's mirror of the head's sequences; proves agreement before anything is computed."""

from dataclasses import dataclass, field

from engine.config import BLOCK_SIZE
from engine.errors import ProtocolError
from engine.protocol.steps import Row, Sampling, Step, step_digest


@dataclass
class Sequence:
    sampling: Sampling
    computed: int
    """Tokens whose keys and values are in the cache."""
    blocks: list[int] = field(default_factory=list)


class Mirror:
    """Applies steps in order; raises ProtocolError on the first that does not follow."""

    def __init__(self, epoch: int, num_blocks: int, vocab_size: int, token_limit: int) -> None:
        self.sequences: dict[int, Sequence] = {}
        self.last = -1
        self._epoch = epoch
        self._num_blocks = num_blocks
        self._vocab_size = vocab_size
        self._token_limit = token_limit

    def apply(self, step: Step) -> list[int]:
        """Update the sequences; returns the blocks that this step hands out to be written."""
        if (step.epoch, step.n) != (self._epoch, self.last + 1):
            raise ProtocolError(
                f"Step {step.n} of epoch {step.epoch} arrived where step {self.last + 1} of epoch "
                f"{self._epoch} was due."
            )
        for seq in step.released:
            if self.sequences.pop(seq, None) is None:
                raise ProtocolError(f"Step {step.n} releases sequence {seq}, which is unknown.")
        if sum(len(row.tokens) for row in step.rows) > self._token_limit:
            raise ProtocolError(f"Step {step.n} exceeds the budget of {self._token_limit} tokens.")
        if len({row.seq for row in step.rows}) != len(step.rows):
            raise ProtocolError(f"Step {step.n} names a sequence twice.")
        fresh = [block for row in step.rows for block in self._apply_row(step.n, row)]
        self._check_digest(step)
        self.last = step.n
        return fresh

    def _apply_row(self, n: int, row: Row) -> list[int]:
        if row.admit is not None:
            if row.seq in self.sequences:
                raise ProtocolError(f"Step {n} admits sequence {row.seq} a second time.")
            self.sequences[row.seq] = Sequence(row.admit, row.start)
        sequence = self.sequences.get(row.seq)
        if sequence is None:
            raise ProtocolError(f"Step {n} continues sequence {row.seq}, which is unknown.")
        if row.start != sequence.computed or not row.tokens:
            raise ProtocolError(
                f"Step {n} continues sequence {row.seq} at {row.start} with {len(row.tokens)} "
                f"tokens, but {sequence.computed} are computed."
            )
        held = len(sequence.blocks)
        sequence.blocks += row.new_blocks
        sequence.computed += len(row.tokens)
        self._check_row(n, row, sequence)
        # Blocks wholly before `start` hold a reused prefix and must keep it.
        reused = max(0, -(-row.start // BLOCK_SIZE) - held)
        return row.new_blocks[reused:]

    def _check_row(self, n: int, row: Row, sequence: Sequence) -> None:
        if sequence.computed > len(sequence.blocks) * BLOCK_SIZE:
            raise ProtocolError(
                f"Step {n} gives sequence {row.seq} {len(sequence.blocks)} blocks for "
                f"{sequence.computed} tokens."
            )
        if not all(0 <= block < self._num_blocks for block in row.new_blocks):
            raise ProtocolError(f"Step {n} hands out a block beyond the {self._num_blocks}.")
        if not all(0 <= token < self._vocab_size for token in row.tokens):
            raise ProtocolError(f"Step {n} holds a token outside the vocabulary.")

    def _check_digest(self, step: Step) -> None:
        mirrors = [
            (row.seq, self.sequences[row.seq].computed, len(self.sequences[row.seq].blocks))
            for row in step.rows
        ]
        if step_digest(step.epoch, step.n, mirrors) != step.digest:
            raise ProtocolError(f"Step {step.n}: this rank's sequences differ from the head's.")
