"""What a head is held to from outside: the body of `PUT /limits`."""

import msgspec

from engine.errors import RequestError


class HeadLimits(msgspec.Struct, frozen=True):
    """What is left out stays as it is."""

    batch_rows: int | msgspec.UnsetType | None = msgspec.UNSET
    """The most answers that may advance in one step; null lifts the limit."""
    target_itl: float | msgspec.UnsetType | None = msgspec.UNSET
    """Seconds that a token may take; null lets the batch always be full."""
    max_waiting: int | msgspec.UnsetType = msgspec.UNSET
    """Requests queued beyond this are refused."""


def read_limits(payload: bytes) -> HeadLimits:
    """Raises RequestError for anything else."""
    try:
        limits = msgspec.json.decode(payload, type=HeadLimits)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"These are no limits: {error}") from error
    if limits == HeadLimits():
        raise RequestError("Say at least one of batch_rows, target_itl and max_waiting.")
    for name in ("batch_rows", "max_waiting"):
        value = getattr(limits, name)
        if isinstance(value, int) and value < 1:
            raise RequestError(f"{name} must be at least 1.", param=name)
    target = limits.target_itl
    if isinstance(target, float) and not 0 < target < 3600:
        raise RequestError("target_itl must be more than 0 seconds, or null.", param="target_itl")
    return limits
