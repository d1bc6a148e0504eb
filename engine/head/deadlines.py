"""How long a head waits for what. Every wait has one, and a sentence for when it runs out."""

import msgspec


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    greeting: float = 5.0
    """From a connection to its Hello."""
    assembling: float = 120.0
    """From the start until every rank said Hello: processes start, torch is imported."""
    reassembling: float = 20.0
    """The same after a fault: spares wait on every box."""
    meeting: float = 60.0
    """From Welcome until rank 0 opened the rendezvous store."""
    loading: float = 180.0
    """Between two signs of progress of one rank while it joins, loads and warms up."""
    new_step: float = 60.0
    """Without any progress in a step of a size not seen before: nothing is known about its time."""
    step: float = 10.0
    """In any other step at least this, ..."""
    step_factor: float = 10.0
    """... or this many times its predicted time."""
    mute: float = 2.5
    """For a rank to answer a ping, idle or not. A slow rank does, however little of a busy box it
    gets; one that is stopped, or out of reach, does not."""
    loading_mute: float = 10.0
    """The same while it loads, when long calls may keep it from answering."""
    ping: float = 0.5
    """Between two pings."""
    blame: float = 0.1
    """From the first fault until one is named: a survivor's complaint may outrun the death."""
    resting: float = 15.0
    """Without work, until a token is asked for to see whether it comes."""
    canary: float = 10.0
    """For that token."""
    backing_off: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0, 8.0)
    """Before the next epoch, by how many brought no token; one more, and the head gives up."""
    fruitful: float = 30.0
    """An epoch that was ready for so long did not fail at once, though nobody asked anything."""
