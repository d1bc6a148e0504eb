"""A step on its way, and what its result has to hold."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat

from engine.core.sequence import Sequence
from engine.errors import ProtocolError
from engine.errors import gettext_noop as _
from engine.protocol.steps import Result, TokenLogprobs

Drawn = tuple[Sequence, int, TokenLogprobs | None]
"""A row, the token drawn for it, and that token's probabilities if they were asked for."""


@dataclass(slots=True)
class Chunk:
    """A row of a prompt: tokens start .. stop-1 of its sequence."""

    sequence: Sequence
    start: int
    stop: int
    samples: bool
    targets: int
    """How many of its tokens are scored."""

    @property
    def last(self) -> bool:
        """Whether it ends a prompt that wants no answer."""
        return not self.samples and self.stop == self.sequence.length


@dataclass(slots=True)
class Flight:
    """A sequence may be in several, which land in the order they were sent."""

    n: int
    sent_at: float
    drawing: list[Sequence]
    """Those that a token is drawn for, in row order; first the rows of one token each."""
    chunks: list[Chunk]
    """The other rows; the last chunk of a prompt draws as well."""

    @property
    def sequences(self) -> Iterator[Sequence]:
        return chain(self.drawing, (chunk.sequence for chunk in self.chunks))

    @property
    def going_on(self) -> list[Sequence]:
        """Those that the next step may compute the drawn token of, though it is not known yet:
        where it may turn out to end the answer the row is wasted, where it must there is none."""
        return [s for s in self.drawing if s.computed < s.enough and not s.ended]

    def drawn(self, result: Result) -> Iterator[Drawn]:
        """Each row that was to draw a token with the token.

        Raises ProtocolError when the result is not one of this step.
        """
        count = len(self.drawing)
        if len(result.tokens) != count or len(result.logprobs) not in (0, count):
            raise ProtocolError(
                _("The result of step %(step)s has the wrong number of tokens."), step=result.n
            )
        return zip(self.drawing, result.tokens, result.logprobs or repeat(None), strict=False)

    def keep_scores(self, result: Result) -> None:
        """Give every scored prompt what this step adds, once: a prompt that is computed again
        brings scores that are known already.

        Raises ProtocolError when some are missing.
        """
        for chunk in self.chunks:
            sequence = chunk.sequence
            if not chunk.targets or sequence.ended or sequence.id in result.failed:
                continue
            scores = result.scores.get(sequence.id, ())
            if len(scores) != chunk.targets:
                raise ProtocolError(
                    _("The result of step %(step)s has the wrong number of scores."), step=result.n
                )
            known = sequence.request.prompt_logprobs
            known += scores[len(known) - chunk.start :]
