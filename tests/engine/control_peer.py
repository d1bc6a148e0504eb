"""The other end of the agent's link, as a real WebSocket server on loopback."""

import asyncio
import http
import time
from collections.abc import Iterable
from typing import Any, TypeVar

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from engine.protocol.agent import (
    AgentHello,
    AgentWelcome,
    Desired,
    FromAgent,
    Heartbeat,
    Observed,
    Pong,
    ProcessState,
    Refused,
    Taken,
    Telemetry,
    ToAgent,
    decode_from_agent,
    encode,
)
from engine.protocol.launch import ProcessSpec
from monitoring.packing import Field, Layout
from monitoring.samples import Sample
from tests.engine.agents import until

M = TypeVar("M", bound=FromAgent)
TOKEN = "node-token-value"


class ControlPeer:
    """`heard` holds the messages of the current connection only."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.takes = True
        """Whether it stores readings, and says so."""
        self.stored: list[Telemetry] = []
        """Readings that were taken, over all connections."""
        self.ahead = 0.0
        """Seconds by which its clock is ahead of this machine's."""
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
            match message:
                case AgentHello():
                    await self._greet(socket)
                case Heartbeat():
                    now = time.time() + self.ahead
                    await socket.send(encode(Pong(message.at, now, now)))
                case Telemetry() if self.takes:
                    self.stored.append(message)
                    await socket.send(encode(Taken([message.seq])))

    async def _greet(self, socket: ServerConnection) -> None:
        answers: list[ToAgent] = (
            [Refused(self.refusal)] if self.refusal else [AgentWelcome("box-1", 0.05), self.desired]
        )
        for answer in answers:
            await socket.send(encode(answer))


def told(messages: Iterable[Telemetry]) -> list[dict[str, list[Sample]]]:
    """The samples of each message by subject; give the messages of a connection from its start."""
    layouts: dict[int, Layout] = {}
    instants = []
    for message in messages:
        layouts.update({layout.number: layout for layout in message.layouts})
        subjects: dict[str, list[Sample]] = {}
        for number, values in message.readings:
            layout = layouts[number]
            subjects[layout.subject] = [
                _sample(layout.subject, field, value)
                for field, value in zip(layout.fields, values, strict=True)
            ]
        instants.append(subjects)
    return instants


def _sample(subject: str, field: Field, value: float | None) -> Sample:
    metric, unit, source, kind, scope, reason, label = field
    told: Any = {"kind": kind, "scope": scope}
    return Sample(metric, value, unit, source, subject=subject, reason=reason, label=label, **told)


async def end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task})
