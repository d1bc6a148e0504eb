"""What a sequence's next token depends on besides its logits: the tokens before it."""

from engine.errors import ProtocolError
from engine.errors import gettext_noop as _
from engine.protocol.steps import Admit
from engine.runner.filters import Floats
from engine.runner.grammar import Follower, Grammars
from engine.runner.tally import Tally

NEVER = float("-inf")


class History:
    """Made from prompt and answer so far, then told of every token once, when it is drawn.

    A sequence that comes back after preemption is made anew from both and draws the same tokens.
    """

    def __init__(self, admit: Admit, token_count: int, grammars: Grammars) -> None:
        """Raises GrammarError when the grammar does not fit this model."""
        sampling = admit.sampling
        answer = admit.history[admit.prompt_length :]
        self.length = len(admit.history)
        self.drawn = len(answer)
        self._sampling = sampling
        self._seen = Tally(admit.history if sampling.repetition_penalty != 1 else (), token_count)
        self._answer = Tally(answer, token_count)
        self._follower: Follower | None = None
        if sampling.grammar:
            self._follower = grammars.follow(sampling.grammar)
            self._follower.advance(answer)

    def advance(self, token: int) -> None:
        """The next token was drawn."""
        self.length += 1
        self.drawn += 1
        self._answer.add(token)
        if self._sampling.repetition_penalty != 1:
            self._seen.add(token)
        if self._follower is not None:
            self._follower.advance([token])

    def check_length(self, position: int) -> None:
        """Raises ProtocolError when the next token does not stand at `position`."""
        if position != self.length:
            raise ProtocolError(
                _("A token is due at position %(position)s of a sequence of %(length)s tokens."),
                position=position,
                length=self.length,
            )

    def penalise(self, row: Floats) -> None:
        """Repetition looks at prompt and answer, presence and frequency at the answer alone.

        Repetition: Keskar et al. 2019 (https://arxiv.org/abs/1909.05858), made to lower negative
        logits too; presence and frequency: OpenAI's API reference.
        """
        sampling = self._sampling
        if sampling.repetition_penalty != 1:
            seen = self._seen.ids
            logits, factor = row[seen], sampling.repetition_penalty
            logits[logits > 0] /= factor
            logits[logits < 0] *= factor
            row[seen] = logits
        if sampling.presence_penalty or sampling.frequency_penalty:
            counts = self._answer.counts
            row[self._answer.ids] -= sampling.presence_penalty + sampling.frequency_penalty * counts

    def forbid(self, row: Floats) -> None:
        """Leave only what the grammar allows, and no end before `min_tokens` unless nothing else
        may come. Raises GrammarError when the grammar cannot go on.
        """
        if self._follower is not None:
            row[~self._follower.allowed(len(row))] = NEVER
        if self.drawn < self._sampling.min_tokens:
            ends = [token for token in self._sampling.stop_tokens if token < len(row)]
            before = row[ends]
            row[ends] = NEVER
            if row.max() == NEVER:
                row[ends] = before
