"""A step on its way, and what its result has to hold."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat

from engine.core.sequence import Sequence
from engine.errors import ProtocolError
from engine.errors import gettext_noop as _
from engine.protocol.steps import Result, TokenLogprobs

Landed = tuple[Sequence, int | None, TokenLogprobs | None]
"""A row, the token drawn for it, and that token's probabilities if they were asked for."""


@dataclass(slots=True)
class Flight:
    """No sequence is in two of them."""

    n: int
    sent_at: float
    decodes: list[Sequence]
    """One token each."""
    prompts: list[tuple[Sequence, int]]
    """Rows of prompts, and where they start."""

    @property
    def sequences(self) -> Iterator[Sequence]:
        return chain(self.decodes, (sequence for sequence, _start in self.prompts))

    def landed(self, result: Result) -> Iterator[Landed]:
        """Each row with what was drawn for it, if anything was.

        Raises ProtocolError when the result is not one of this step.
        """
        decodes = len(self.decodes)
        count = decodes + sum(sequence.samples for sequence, _start in self.prompts)
        if len(result.tokens) != count or len(result.logprobs) not in (0, count):
            raise ProtocolError(
                _("The result of step %(step)s has the wrong number of tokens."), step=result.n
            )
        reports = result.logprobs or repeat(None)
        rows: Iterator[Landed] = zip(self.decodes, result.tokens, reports, strict=False)
        if not self.prompts:
            return rows
        return chain(rows, self._prompts(result.tokens[decodes:], result.logprobs[decodes:]))

    def _prompts(
        self, tokens: list[int], reports: tuple[TokenLogprobs | None, ...]
    ) -> Iterator[Landed]:
        drawn = zip(tokens, reports or repeat(None), strict=False)
        for sequence, _start in self.prompts:
            token, report = next(drawn) if sequence.samples else (None, None)
            yield sequence, token, report

    def keep_scores(self, result: Result) -> None:
        """Give every scored prompt what this step adds, once: a prompt that is computed again
        brings scores that are known already.

        Raises ProtocolError when some are missing.
        """
        for sequence, start in self.prompts:
            wanted = targets(sequence, start)
            if not wanted or sequence.ended or sequence.id in result.failed:
                continue
            scores = result.scores.get(sequence.id, ())
            if len(scores) != len(wanted):
                raise ProtocolError(
                    _("The result of step %(step)s has the wrong number of scores."), step=result.n
                )
            known = sequence.request.prompt_logprobs
            known += scores[len(known) - start :]


def targets(sequence: Sequence, start: int) -> list[int]:
    """What follows each token from `start` to what is computed, if it is prompt to be scored and
    was not scored before."""
    request = sequence.request
    until = min(sequence.computed, len(request.prompt) - 1)
    if not request.score_prompt or until <= len(request.prompt_logprobs):
        return []
    return request.prompt[start + 1 : until + 1]
