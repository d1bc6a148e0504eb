"""Errors shown to a person. The message is a translated sentence; the cause goes to the log."""


class TandemError(Exception):
    """Something Tandem refuses or cannot do, said to the person in one sentence."""


class StatusConflict(TandemError):
    """A change that the current status does not allow, or that somebody else made first."""


class PlacementError(TandemError):
    """The ranks do not fit the nodes; the message says which, by how much, and what would help."""


class ImportRefused(TandemError):
    """A model file that cannot be taken into the catalogue."""


class NotReady(TandemError):
    """Nothing can answer yet."""
