"""The other end of the agent's link, as a real WebSocket server on loopback."""

import asyncio
import http
from typing import TypeVar

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from engine.protocol.agent import (
    AgentHello,
    AgentWelcome,
    Desired,
    FromAgent,
    Observed,
    ProcessState,
    Refused,
    ToAgent,
    decode_from_agent,
    encode,
)
from engine.protocol.launch import ProcessSpec
from tests.engine.agents import until

M = TypeVar("M", bound=FromAgent)
TOKEN = "node-token-value"


class ControlPeer:
    """`heard` holds the messages of the current connection only."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.dials = 0
        self.paths: list[str] = []
        self.heard: list[FromAgent] = []
        self.desired = Desired(0, [])
        self.port = 0
        self._socket: ServerConnection | None = None
        self._server: Server | None = None

    async def open(self) -> "ControlPeer":
        self._server = await serve(
            self._talk, "127.0.0.1", self.port, process_request=self._admit, compression=None
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]
        return self

    async def close(self) -> None:
        if self._server:
            self._server.close()
            await self._server.wait_closed()
        self._server = self._socket = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def ask(self, *specs: ProcessSpec) -> None:
        self.desired = Desired(self.desired.generation + 1, list(specs))
        if self._socket:
            await self._socket.send(encode(self.desired))

    def cut(self) -> None:
        """As if the cable were pulled and the peer reset."""
        assert self._socket is not None
        self._socket.transport.abort()

    def all(self, kind: type[M]) -> list[M]:
        return [message for message in self.heard if isinstance(message, kind)]

    @property
    def observed(self) -> Observed:
        return self.all(Observed)[-1]

    def process(self, key: str) -> ProcessState | None:
        states = [s for o in self.all(Observed)[-1:] for s in o.processes if s.key == key]
        return states[0] if states else None

    async def sees(self, key: str, status: str) -> ProcessState:
        def seen() -> bool:
            state = self.process(key)
            return state is not None and state.status == status

        await until(seen, f"{key} to be {status}")
        state = self.process(key)
        assert state is not None
        return state

    def _admit(self, _: ServerConnection, request: Request) -> Response | None:
        self.dials += 1
        self.paths.append(request.path)
        if request.headers.get("Authorization") == f"Bearer {TOKEN}":
            return None
        status = http.HTTPStatus.FORBIDDEN
        return Response(status.value, status.phrase, request.headers.__class__())

    async def _talk(self, socket: ServerConnection) -> None:
        self._socket, self.heard = socket, []
        async for payload in socket:
            assert isinstance(payload, bytes)
            message = decode_from_agent(payload)
            self.heard.append(message)
            if isinstance(message, AgentHello):
                await self._greet(socket)

    async def _greet(self, socket: ServerConnection) -> None:
        answers: list[ToAgent] = (
            [Refused(self.refusal)] if self.refusal else [AgentWelcome("box-1", 0.05), self.desired]
        )
        for answer in answers:
            await socket.send(encode(answer))


async def end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task})
