"""What is wrong with a document, all of it at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext_noop as _

from dashboard.errors import TandemError
from dashboard.sentences import Sentence


@dataclass(frozen=True)
class Problem:
    line: int
    """0: of no line."""
    at: str
    """The place by names, such as `nodes.box-1`; empty for the line itself."""
    why: Sentence

    @property
    def sentence(self) -> Sentence:
        if self.line and self.at:
            words = _("Line %(line)s, %(at)s: %(why)s")
            return Sentence(words, line=self.line, at=self.at, why=self.why)
        if self.line:
            return Sentence(_("Line %(line)s: %(why)s"), line=self.line, why=self.why)
        return Sentence("%(at)s: %(why)s", at=self.at, why=self.why) if self.at else self.why


class DocumentRefused(TandemError):
    """Nothing was changed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems[0].sentence)
        self.problems = list(problems)

    def __str__(self) -> str:
        return "\n".join(str(problem.sentence) for problem in self.problems)
