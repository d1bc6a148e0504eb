"""Where ranks knock: lets in those that know the launch's secret, for as long as the launch lasts.

Epochs come and go behind it; a rank always joins the one that is gathering.
"""

import asyncio
import hmac
import logging

import msgspec

from engine.errors import ProtocolError
from engine.head.group import RankGroup
from engine.protocol.framing import read_frame
from engine.protocol.launch import Address, ProcessSpec
from engine.protocol.steps import PROTOCOL_VERSION, Hello, decode_from_rank

log = logging.getLogger(__name__)

MAX_GREETING = 4096
"""Bytes a stranger may send."""


class Door:
    def __init__(self, spec: ProcessSpec, greeting: float) -> None:
        """`greeting`: seconds a stranger has to say who it is."""
        self.group: RankGroup | None = None
        """Where ranks are sent; None turns them away."""
        self._spec = spec
        self._greeting = greeting
        self._server: asyncio.Server | None = None

    async def open(self) -> Address:
        """Raises OSError when the control port is taken."""
        control = self._spec.control
        self._server = await asyncio.start_server(self._serve, control.host, control.port)
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    def close(self) -> None:
        self.group = None
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            hello = await self._greet(reader)
            group = self.group
            if group is None:
                raise ProtocolError("this head is ending.")
            peer = group.admit(hello, writer)
        except ProtocolError as error:
            log.warning("Refused a connection to the control port: %s", error)
            writer.close()
            return
        log.info("Rank %d has connected, process %d.", hello.rank, hello.pid)
        await group.follow(peer, reader)

    async def _greet(self, reader: asyncio.StreamReader) -> Hello:
        """Check a stranger's Hello; raises ProtocolError, and says nothing about secrets."""
        try:
            payload = await asyncio.wait_for(read_frame(reader, MAX_GREETING), self._greeting)
            hello = decode_from_rank(payload)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, msgspec.MsgspecError) as error:
            raise ProtocolError("it did not say hello.") from error
        if not isinstance(hello, Hello):
            raise ProtocolError("it did not say hello.")
        if hello.version != PROTOCOL_VERSION:
            raise ProtocolError(f"it speaks version {hello.version}, not {PROTOCOL_VERSION}.")
        token_right = hmac.compare_digest(hello.token.encode(), self._spec.token.encode())
        launch_right = hmac.compare_digest(hello.launch.encode(), self._spec.launch.encode())
        if not (token_right and launch_right):
            raise ProtocolError("its launch or token is wrong.")
        return hello
