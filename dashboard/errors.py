"""Errors shown to a person. The message is a translated sentence; the cause goes to the log."""

from dashboard.sentences import Sentence


class TandemError(Exception):
    """Something Tandem refuses or cannot do, said to the person in one sentence."""

    def __init__(self, sentence: Sentence | str) -> None:
        super().__init__(sentence)
        self.sentence = Sentence.of(sentence)

    def __str__(self) -> str:
        """In the language of whoever is being told."""
        return str(self.sentence)


class StatusConflict(TandemError):
    """A change that the current status does not allow, or that somebody else made first."""


class PlacementError(TandemError):
    """The ranks do not fit the nodes; the message says which, by how much, and what would help."""


class ImportRefused(TandemError):
    """A model file that cannot be taken into the catalogue."""


class NotReady(TandemError):
    """Nothing can answer yet."""
