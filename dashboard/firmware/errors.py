"""What goes wrong with firmware, said to the person."""

from dashboard.errors import TandemError


class ImageRefused(TandemError):
    """A file, signature or bundle that is not taken in."""


class ImageInUse(TandemError):
    """An image that a roll-out names cannot be removed."""


class BmcError(TandemError):
    """A BMC cannot be asked, or does not answer."""
