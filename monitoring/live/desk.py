"""What was just read, to every browser that looks at it. Loss is allowed: pages seed from the
database, and what is lost now is followed by the next second."""

import asyncio
from collections.abc import Collection
from weakref import WeakKeyDictionary

from monitoring.live.frames import Frame
from monitoring.live.hub import Hub
from monitoring.live.relay import Relay
from monitoring.live.spots import spots


class Live:
    """The browsers of this process, and the way to those of all others. One an event loop."""

    def __init__(self) -> None:
        self.relay = Relay()
        self.hub = Hub(self.relay)

    async def close(self) -> None:
        await self.hub.close()
        await self.relay.close()


_lives: WeakKeyDictionary[asyncio.AbstractEventLoop, Live] = WeakKeyDictionary()


def live() -> Live:
    """That of the running loop."""
    return _lives.setdefault(asyncio.get_running_loop(), Live())


def publish(frame: Frame) -> None:
    """Show a frame that was just read."""
    here, seen = live(), spots(frame)
    here.hub.take(seen)
    here.relay.send(seen)


def filled(nodes: Collection[int]) -> None:
    """What these had to tell of the past is stored: charts that were drawn before lack it."""
    if nodes:
        live().hub.filled(nodes)
        live().relay.send_filled(nodes)
