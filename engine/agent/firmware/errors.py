"""What an order fails with."""

from engine.errors import EngineError


class FirmwareError(EngineError):
    """A sentence for whoever looks at the update."""


class Unsettled(FirmwareError):
    """What became of it cannot be told now; asking again later may."""
