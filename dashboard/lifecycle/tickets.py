"""Numbers that make each queued message count once: even while it waits, odd while a worker that
took it is at work. Whoever hands out a new one voids all others."""


def taken(ticket: int) -> int:
    """What a message's ticket becomes when a worker takes it."""
    return ticket + 1


def at_work(ticket: int) -> bool:
    return ticket % 2 == 1


def next_queued(ticket: int) -> int:
    """Of the message that is queued next, whether a worker has the present one or not."""
    return ticket + 2 - ticket % 2
