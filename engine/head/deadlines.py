"""How long a head waits for what. Every wait has one, and a sentence for when it runs out."""

import msgspec


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    greeting: float = 5.0
    """From a connection to its Hello."""
    assembling: float = 120.0
    """From the start until every rank said Hello: processes start, torch is imported."""
    meeting: float = 60.0
    """From Welcome until rank 0 opened the rendezvous store."""
    loading: float = 180.0
    """Between two signs of progress of one rank while it joins, loads and warms up."""
    new_step: float = 60.0
    """For a step of a size not seen before: nothing is known about its time."""
    step: float = 30.0
    """For any other step at least this, ..."""
    step_factor: float = 10.0
    """... or this many times its predicted time."""
    mute: float = 3.0
    """For a rank to answer a ping while a step is on its way. A slow rank does, however little of a
    busy box it gets; one that is stopped, or out of reach, does not."""
    silence: float = 10.0
    """For an idle rank to answer a ping."""
    ping: float = 1.0
    """Between two pings."""
    blame: float = 0.25
    """From the first fault until one is named: a survivor's complaint may outrun the death."""
