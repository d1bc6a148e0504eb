"""How a deployment can leave a node without anybody noticing. Pure."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec


class Way(StrEnum):
    NOTHING = "nothing"
    """It has nothing there."""
    SHED = "shed"
    """Other replicas answer: those there finish and end."""
    COPY = "copy"
    """A launch elsewhere takes over from each that is there."""
    FALLBACK = "fallback"
    """The fallback takes over from another node."""
    AGAIN = "again"
    """Only the fallback is there: it is started again elsewhere."""
    STUCK = "stuck"
    """It would stop answering."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A live launch of the deployment."""

    fallback: bool = False
    here: bool = False
    """On the node that is to be cleared, in part or whole."""
    ready: bool = True


def way_off(launches: Sequence[Held], *, room: bool, fallback: bool) -> Way:
    """`room`: copies of all primaries fit elsewhere, beside everything that runs; `fallback`: one
    is configured and fits elsewhere."""
    primaries = [launch for launch in launches if not launch.fallback]
    there = [launch for launch in primaries if launch.here]
    if not there:
        return Way.AGAIN if any(launch.here for launch in launches) else Way.NOTHING
    if any(launch.ready and not launch.here for launch in primaries):
        return Way.SHED
    if room:
        return Way.COPY
    return Way.FALLBACK if fallback else Way.STUCK
