"""A WebSocket client for ASGI applications, without a server.

`channels.testing` would do, but importing it needs daphne.
"""

import json
from collections.abc import Sequence
from typing import Any

from asgiref.testing import ApplicationCommunicator

SECONDS = 10.0


class Closed(Exception):
    """The server closed the socket with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class SocketClient:
    def __init__(
        self,
        application: Any,
        path: str,
        headers: Sequence[tuple[bytes, bytes]] = (),
        **scope: Any,
    ) -> None:
        communicator: Any = ApplicationCommunicator  # asgiref leaves it untyped
        self._talk = communicator(
            application,
            {
                "type": "websocket",
                "path": path,
                "query_string": b"",
                "headers": list(headers),
                "subprotocols": [],
                **scope,
            },
        )

    async def connect(self) -> bool:
        """False when it was refused before it was open."""
        await self._talk.send_input({"type": "websocket.connect"})
        answer = await self._talk.receive_output(SECONDS)
        return bool(answer["type"] == "websocket.accept")

    async def send(self, data: bytes | str) -> None:
        key = "bytes" if isinstance(data, bytes) else "text"
        await self._talk.send_input({"type": "websocket.receive", key: data})

    async def receive(self) -> bytes | str:
        """Raises Closed when the server closes instead, TimeoutError when nothing comes."""
        message = await self._talk.receive_output(SECONDS)
        if message["type"] == "websocket.close":
            raise Closed(message.get("code", 1000))
        data: bytes | str = message.get("bytes") or message["text"]
        return data

    async def receive_json(self) -> Any:
        return json.loads(await self.receive())

    async def nothing_arrives(self) -> bool:
        return bool(await self._talk.receive_nothing())

    async def disconnect(self, code: int = 1000) -> None:
        await self._talk.send_input({"type": "websocket.disconnect", "code": code})
        await self._talk.wait(SECONDS)
