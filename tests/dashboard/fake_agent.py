"""An agent that speaks the real protocol and runs nothing: tests say what it sees."""

import asyncio
from types import TracebackType
from typing import Self

import msgspec

from dashboard.asgi import application
from dashboard.lifecycle.nodes import HEARTBEAT_SECONDS
from engine.errors import Said
from engine.protocol.agent import (
    AGENT_PROTOCOL_VERSION,
    AgentHello,
    AgentWelcome,
    Desired,
    FromAgent,
    Heartbeat,
    Inventory,
    LogLines,
    Observed,
    Pong,
    ProcessState,
    Taken,
    ToAgent,
    decode_to_agent,
    encode,
)
from engine.protocol.firmware import FirmwareState
from engine.protocol.launch import ProcessSpec
from engine.protocol.stats import EngineStats, HeadStatus, RankStats
from engine.protocol.steps import Phase
from tests.sockets import SocketClient

ANSWER_SECONDS = 10.0


def inventory(address: str, memory_bytes: int = 16 * 2**30, boot_id: str = "") -> Inventory:
    return Inventory(
        hostname="box",
        address=address,
        platform="Linux",
        cpu_model="Test CPU",
        cpu_count=2,
        memory_bytes=memory_bytes,
        python="3.11",
        engine_version="0.1.0",
        boot_id=boot_id,
    )


class FakeAgent:
    """`async with FakeAgent(token, address) as agent:` is connected and has been told its state."""

    def __init__(self, token: str, address: str, memory_bytes: int = 16 * 2**30) -> None:
        self.address = address
        self.memory_bytes = memory_bytes
        self.socket = SocketClient(
            application, "/ws/agent", headers=[(b"authorization", f"Bearer {token}".encode())]
        )
        self.desired = Desired(0, [])
        self.processes: dict[str, ProcessState] = {}
        self.next_pid = 1000
        self.heart: asyncio.Task[None] | None = None
        self.boot_id = "first"
        self.orders: list[FirmwareState] = []

    async def __aenter__(self) -> Self:
        await self.dial()
        self.heart = asyncio.create_task(self._live())
        await self.report()
        await self.receive_desired()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.go()

    async def _live(self) -> None:
        """However long a test takes, a sign of life a second."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            await self.beat()

    async def go(self) -> None:
        """Its connection is cut; what it runs goes on."""
        if self.heart is not None:
            self.heart.cancel()
        await self.socket.disconnect()

    async def dial(self) -> AgentWelcome:
        assert await self.socket.connect()
        told = inventory(self.address, self.memory_bytes, self.boot_id)
        await self.say(AgentHello(AGENT_PROTOCOL_VERSION, told))
        welcome = await self.receive()
        assert isinstance(welcome, AgentWelcome)
        return welcome

    async def say(self, message: FromAgent) -> None:
        await self.socket.send(encode(message))

    async def receive(self) -> ToAgent:
        """The next message that says what to do; answers to heartbeats and readings are not."""
        while isinstance(message := await self.hear(), Pong | Taken):
            pass
        return message

    async def hear(self) -> ToAgent:
        data = await self.socket.receive()
        assert isinstance(data, bytes)
        return decode_to_agent(data)

    async def receive_desired(self) -> Desired:
        message = await self.receive()
        assert isinstance(message, Desired)
        self.desired = message
        return message

    async def told(self, launch: str | None) -> None:
        """Receive until the desired state is this launch, or nothing at all."""
        wanted = {launch} if launch else set()
        async with asyncio.timeout(ANSWER_SECONDS):
            while {spec.launch for spec in self.desired.processes} != wanted:
                await self.receive_desired()

    async def told_of(self, *launches: str) -> None:
        """Receive until the desired state has these launches, among others."""
        async with asyncio.timeout(ANSWER_SECONDS):
            while not set(launches) <= {spec.launch for spec in self.desired.processes}:
                await self.receive_desired()

    def start_desired(self) -> None:
        """As the real one: start what is wanted and unknown, forget what is not wanted."""
        wanted = {spec.key: spec for spec in self.desired.processes}
        self.processes = {key: state for key, state in self.processes.items() if key in wanted}
        for key, spec in wanted.items():
            self.processes.setdefault(key, self._running(spec))

    def _running(self, spec: ProcessSpec) -> ProcessState:
        self.next_pid += 1
        return ProcessState(
            key=spec.key,
            launch=spec.launch,
            role=spec.role,
            rank=spec.rank,
            status="running",
            pid=self.next_pid,
        )

    def exit(self, ending: str, code: int, words: str = "", asked: bool = False) -> None:
        """The process whose key ends so has ended."""
        key = next(key for key in self.processes if key.endswith(ending))
        self.processes[key] = msgspec.structs.replace(
            self.processes[key],
            status="exited",
            exit_code=code,
            asked=asked,
            reason=Said("It ended."),
            log_tail=[words] if words else [],
        )

    def restart(self, ending: str, code: int) -> None:
        """The process whose key ends so has ended and was started again at once."""
        key = next(key for key in self.processes if key.endswith(ending))
        old = self.processes[key]
        self.next_pid += 1
        self.processes[key] = msgspec.structs.replace(
            old, pid=self.next_pid, exit_code=code, restarts=old.restarts + 1
        )

    def engine(
        self, status: HeadStatus, *phases: Phase, progress: float | None = None, detail: str = ""
    ) -> EngineStats:
        """What the only head on this node would say, with one phase a rank."""
        launch = next(spec.launch for spec in self.desired.processes if spec.role == "head")
        return self.engine_of(launch, status, *phases, progress=progress, detail=detail)

    def engine_of(
        self,
        launch: str,
        status: HeadStatus,
        *phases: Phase,
        progress: float | None = None,
        detail: str = "",
    ) -> EngineStats:
        """The same of one of several launches."""
        ranks = [
            RankStats(
                rank=rank,
                phase=phase,
                connected=True,
                pid=1,
                progress=progress if phase == "loading" else None,
                kv_heads=2 - rank if phase == "ready" else None,
                kernel="fp32" if phase == "ready" else "",
            )
            for rank, phase in enumerate(phases)
        ]
        return EngineStats(launch=launch, status=status, detail=Said(detail), ranks=ranks)

    async def report(self, *engines: EngineStats, generation: int | None = None) -> None:
        await self.say(
            Observed(
                generation=self.desired.generation if generation is None else generation,
                processes=list(self.processes.values()),
                engines=list(engines),
                orders=self.orders,
            )
        )

    async def log(self, key: str, *lines: str) -> None:
        await self.say(LogLines(key=key, launch=key.partition(":")[0], lines=list(lines)))

    async def beat(self) -> None:
        await self.say(Heartbeat(0.0))
