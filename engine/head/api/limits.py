"""What a head is held to from outside: the body of `PUT /limits`."""

import msgspec

from engine.errors import RequestError


class HeadLimits(msgspec.Struct, frozen=True):
    batch_rows: int | None
    """The most answers that may advance in one step; null lifts the limit."""


def read_limits(payload: bytes) -> HeadLimits:
    """Raises RequestError for anything else."""
    try:
        limits = msgspec.json.decode(payload, type=HeadLimits)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"These are no limits: {error}") from error
    if limits.batch_rows is not None and limits.batch_rows < 1:
        raise RequestError("batch_rows must be at least 1, or null.", param="batch_rows")
    return limits
