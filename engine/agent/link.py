"""The agent's one connection: it dials out, and dials again for as long as it lives."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Iterator
from typing import NoReturn, Protocol
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from engine.errors import DeadlineError, EngineError, ProtocolError
from engine.protocol.agent import (
    AGENT_PROTOCOL_VERSION,
    AgentHello,
    AgentWelcome,
    Desired,
    FromAgent,
    Heartbeat,
    Inventory,
    Pong,
    Refused,
    Taken,
    ToAgent,
    decode_to_agent,
    encode,
)

log = logging.getLogger(__name__)

PATH = "/ws/agent"
OPEN_SECONDS = 10.0
WELCOME_SECONDS = 60.0
"""A whole fleet dials at once after its panel has been away, and is let in one by one."""
FLUSH_SECONDS = 0.25
FIRST_DELAY, MOST_DELAY = 0.2, 5.0
REFUSED_DELAY = 30.0
"""A wrong token does not become right by itself, but an operator may correct it."""
MAX_MESSAGE = 8 * 1024 * 1024


class LinkRefused(EngineError):
    """The control plane does not want this node: wrong token or version."""


class Correspondent(Protocol):
    """Who the link speaks for."""

    wake: asyncio.Event
    """Set when something should be sent at once."""

    def connected(self) -> None:
        """A new connection: whatever was said before may be lost, so all of it is due again."""

    def outgoing(self) -> Iterator[FromAgent]:
        """What to send now. An item counts as sent when the next one is asked for."""

    def desired(self, state: Desired) -> None: ...

    def taken(self, message: Taken) -> None:
        """The panel has these readings; they need not be kept any longer."""

    def pong(self, message: Pong) -> None:
        """The panel has answered a heartbeat."""

    def now(self) -> float:
        """On the clock that heartbeats tell."""


class Backoff:
    """Growing delays with jitter, so that a fleet does not come back in one wave."""

    def __init__(self, jitter: random.Random | None = None) -> None:
        self._jitter = jitter or random.Random()
        self._delay = FIRST_DELAY

    def reset(self) -> None:
        self._delay = FIRST_DELAY

    def next(self) -> float:
        delay, self._delay = self._delay, min(MOST_DELAY, self._delay * 1.5)
        return delay * self._jitter.uniform(0.5, 1.0)

    def refused(self) -> float:
        return REFUSED_DELAY * self._jitter.uniform(0.8, 1.2)


def socket_url(server: str) -> str:
    """`http://host:8000` -> `ws://host:8000/ws/agent`; raises ProtocolError."""
    parts = urlsplit(server)
    scheme = {"http": "ws", "ws": "ws", "https": "wss", "wss": "wss"}.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise ProtocolError(f"{server!r} is no server address; write it as http://host:8000.")
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}{PATH}"


class Link:
    def __init__(
        self, server: str, token: str, inventory: Inventory, correspondent: Correspondent
    ) -> None:
        self._url = socket_url(server)
        self._token = token
        self._inventory = inventory
        self._correspondent = correspondent
        self._backoff = Backoff()
        self._anew = asyncio.Event()

    def introduce(self, inventory: Inventory) -> None:
        """The node is made of something else now: the connection is made anew to say so."""
        self._inventory = inventory
        self._anew.set()

    async def run(self) -> NoReturn:
        while True:
            await asyncio.sleep(await self._once())

    async def _once(self) -> float:
        """One connection, from dialling to its loss; answers the delay before the next."""
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                socket = await self._dial()
            async with socket:
                await self._converse(socket)
        except LinkRefused as refusal:
            delay = self._backoff.refused()
            log.error("%s Trying again in %.0f s.", refusal, delay)
        except TimeoutError:
            delay = self._backoff.next()
            log.warning("%s does not answer. Trying again in %.1f s.", self._url, delay)
        except (OSError, InvalidHandshake, ConnectionClosed, EngineError) as error:
            delay = self._backoff.next()
            log.warning("No link to %s: %s. Trying again in %.1f s.", self._url, error, delay)
        return delay

    async def _dial(self) -> ClientConnection:
        try:
            return await connect(
                self._url,
                additional_headers={"Authorization": f"Bearer {self._token}"},
                proxy=None,
                compression=None,
                open_timeout=OPEN_SECONDS,
                close_timeout=2.0,
                ping_interval=5.0,
                ping_timeout=15.0,
                max_size=MAX_MESSAGE,
            )
        except InvalidStatus as error:
            if error.response.status_code in (401, 403):
                raise LinkRefused("The server refused this node's token.") from error
            raise
        except InvalidURI as error:
            raise ProtocolError(f"{self._url} is no WebSocket address.") from error

    async def _converse(self, socket: ClientConnection) -> NoReturn:
        """Ends only by raising: the loss of the link, or a refusal."""
        self._anew.clear()
        await socket.send(encode(AgentHello(AGENT_PROTOCOL_VERSION, self._inventory)))
        welcome = await self._welcome(socket)
        log.info("Linked to %s as node %s.", self._url, welcome.node)
        self._correspondent.connected()
        duties = [
            asyncio.create_task(duty)
            for duty in (
                self._listen(socket),
                self._speak(socket),
                self._beat(socket, welcome.heartbeat_seconds),
                self._begin_anew(socket),
            )
        ]
        try:
            await asyncio.wait(duties, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for duty in duties:
                duty.cancel()
            endings = await asyncio.gather(*duties, return_exceptions=True)
        for ending in endings:
            if isinstance(ending, Exception):
                raise ending
        raise ProtocolError("the conversation ended")

    async def _begin_anew(self, socket: ClientConnection) -> NoReturn:
        await self._anew.wait()
        await socket.close()
        raise ProtocolError("this node's devices have changed, and it says so first")

    async def _welcome(self, socket: ClientConnection) -> AgentWelcome:
        try:
            async with asyncio.timeout(WELCOME_SECONDS):
                message = await self._receive(socket)
        except TimeoutError as error:
            raise DeadlineError(f"no welcome within {WELCOME_SECONDS:g} s") from error
        if not isinstance(message, AgentWelcome):
            raise ProtocolError("the server began with something other than a welcome")
        return message

    async def _listen(self, socket: ClientConnection) -> NoReturn:
        while True:
            message = await self._receive(socket)
            match message:
                case Desired():
                    self._backoff.reset()
                    self._correspondent.desired(message)
                case Taken():
                    self._correspondent.taken(message)
                case Pong():
                    self._correspondent.pong(message)

    async def _receive(self, socket: ClientConnection) -> ToAgent:
        try:
            payload = await socket.recv(decode=False)
            message = decode_to_agent(payload)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"the server sent something unreadable ({error})") from error
        if isinstance(message, Refused):
            raise LinkRefused(f"The server refused this node: {message.reason}")
        return message

    async def _speak(self, socket: ClientConnection) -> NoReturn:
        wake = self._correspondent.wake
        while True:
            for message in self._correspondent.outgoing():
                await socket.send(encode(message))
            # Not `wait_for`: in Python 3.11 it may lose a cancellation.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await wake.wait()

    async def _beat(self, socket: ClientConnection, period: float) -> NoReturn:
        while True:
            await socket.send(encode(Heartbeat(self._correspondent.now())))
            await asyncio.sleep(period)
