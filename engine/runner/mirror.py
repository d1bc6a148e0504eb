"""The rank's mirror of the head's sequences; proves agreement before anything is computed."""

from dataclasses import dataclass, field
from itertools import chain

from engine.config import BLOCK_SIZE
from engine.errors import ProtocolError
from engine.errors import gettext_noop as _
from engine.protocol.steps import PENDING, Admit, Row, Step, step_digest


@dataclass
class Sequence:
    admit: Admit
    computed: int
    """Tokens whose keys and values are in the cache."""
    blocks: list[int] = field(default_factory=list)


class Mirror:
    """Applies steps in order; raises ProtocolError on the first that does not follow."""

    def __init__(self, epoch: int, num_blocks: int, vocab_size: int, token_limit: int) -> None:
        self.sequences: dict[int, Sequence] = {}
        self.last = -1
        self._drawing: set[int] = set()
        """Sequences that the last step drew a token for."""
        self._epoch = epoch
        self._num_blocks = num_blocks
        self._vocab_size = vocab_size
        self._token_limit = token_limit

    def apply(self, step: Step) -> list[int]:
        """Update the sequences; returns the blocks that this step hands out to be written."""
        if (step.epoch, step.n) != (self._epoch, self.last + 1):
            raise ProtocolError(
                _(
                    "Step %(step)s of epoch %(epoch)s arrived where step %(due)s of epoch "
                    "%(due_epoch)s was due."
                ),
                step=step.n,
                epoch=step.epoch,
                due=self.last + 1,
                due_epoch=self._epoch,
            )
        for seq in step.released:
            if self.sequences.pop(seq, None) is None:
                raise ProtocolError(
                    _("Step %(step)s releases sequence %(seq)s, which is unknown."),
                    step=step.n,
                    seq=seq,
                )
        if sum(len(row.tokens) for row in step.rows) > self._token_limit:
            raise ProtocolError(
                _("Step %(step)s exceeds the budget of %(limit)s tokens."),
                step=step.n,
                limit=self._token_limit,
            )
        if len({row.seq for row in step.rows}) != len(step.rows):
            raise ProtocolError(_("Step %(step)s names a sequence twice."), step=step.n)
        fresh = [block for row in step.rows for block in self._apply_row(step.n, row)]
        self._check_digest(step)
        self.last = step.n
        self._drawing = {row.seq for row in step.rows if row.sample}
        return fresh

    def _apply_row(self, n: int, row: Row) -> list[int]:
        if row.admit is not None:
            if row.seq in self.sequences:
                raise ProtocolError(
                    _("Step %(step)s admits sequence %(seq)s a second time."), step=n, seq=row.seq
                )
            self.sequences[row.seq] = Sequence(row.admit, row.start)
        sequence = self.sequences.get(row.seq)
        if sequence is None:
            raise ProtocolError(
                _("Step %(step)s continues sequence %(seq)s, which is unknown."),
                step=n,
                seq=row.seq,
            )
        if row.start != sequence.computed or not row.tokens:
            raise ProtocolError(
                _(
                    "Step %(step)s continues sequence %(seq)s at %(start)s with %(count)s tokens, "
                    "but %(computed)s are computed."
                ),
                step=n,
                seq=row.seq,
                start=row.start,
                count=len(row.tokens),
                computed=sequence.computed,
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
                _(
                    "Step %(step)s gives sequence %(seq)s %(blocks)s blocks for %(computed)s "
                    "tokens."
                ),
                step=n,
                seq=row.seq,
                blocks=len(sequence.blocks),
                computed=sequence.computed,
            )
        if not all(0 <= block < self._num_blocks for block in row.new_blocks):
            raise ProtocolError(
                _("Step %(step)s hands out a block beyond the %(limit)s."),
                step=n,
                limit=self._num_blocks,
            )
        if row.tokens == [PENDING]:
            self._check_pending(n, row)
        elif not all(0 <= token < self._vocab_size for token in chain(row.tokens, row.targets)):
            raise ProtocolError(_("Step %(step)s holds a token outside the vocabulary."), step=n)

    def _check_pending(self, n: int, row: Row) -> None:
        if row.seq not in self._drawing or row.admit is not None or row.targets:
            raise ProtocolError(
                _(
                    "Step %(step)s computes a token of sequence %(seq)s that the step before does "
                    "not draw."
                ),
                step=n,
                seq=row.seq,
            )

    def _check_digest(self, step: Step) -> None:
        mirrors = [
            (row.seq, self.sequences[row.seq].computed, len(self.sequences[row.seq].blocks))
            for row in step.rows
        ]
        if step_digest(step.epoch, step.n, mirrors) != step.digest:
            raise ProtocolError(
                _("Step %(step)s: this rank's sequences differ from the head's."), step=step.n
            )
