"""Agent <-> control plane messages, msgpack over the agent's one outgoing WebSocket.

The agent opens `ws(s)://SERVER/ws/agent` with `Authorization: Bearer NODE_TOKEN`. The control plane
always sends the node's *full* desired state; the agent always reports its full observed state. Lost
messages cost delay, never state.
"""

from typing import Literal

import msgspec

from engine.errors import Said
from engine.protocol.launch import ProcessSpec, Role
from engine.protocol.stats import EngineStats
from monitoring.samples import Sample

AGENT_PROTOCOL_VERSION = 2

ProcessStatus = Literal["starting", "running", "exited"]


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """What the node is made of, as probed at connect."""

    hostname: str
    address: str
    """The address at which the control plane and other nodes reach this one."""
    link_address: str = ""
    """Its address on the cable between the boxes, for the ranks alone; empty without one."""
    platform: str
    cpu_model: str
    cpu_count: int
    memory_bytes: int
    python: str
    engine_version: str
    instruction_sets: list[str] = []
    """What matters to kernels, e.g. `avx2`, `avx512_vnni`, `amx_int8`."""


class AgentHello(msgspec.Struct, frozen=True, tag="hello"):
    version: int
    inventory: Inventory


class ProcessState(msgspec.Struct, frozen=True, kw_only=True):
    """One engine process as the agent sees it. `key` is ProcessSpec.key."""

    key: str
    launch: str
    role: Role
    rank: int | None
    status: ProcessStatus
    """`starting` also while it waits to be started again; `exited` means that it stays so."""
    pid: int | None = None
    exit_code: int | None = None
    """Of its last end, negative: killed by that signal. None before the first."""
    restarts: int = 0
    """Times the agent started it again since it was first wanted."""
    asked: bool = False
    """It ends, or ended, because the desired state no longer has it."""
    reason: Said = Said()
    """Why it exited, as a sentence, with the last words of its log when there are any."""
    started_at: float = 0.0
    """Unix seconds."""
    log_tail: list[str] = []
    """The last lines of its log, newest last; only on an exited process."""


class Observed(msgspec.Struct, frozen=True, tag="observed"):
    """The node's whole observed state. `generation` is the desired state it has acted on."""

    generation: int
    processes: list[ProcessState]
    engines: list[EngineStats] = []
    """One per head on this node: readiness, rank phases, counters."""


class LogLines(msgspec.Struct, frozen=True, tag="log"):
    key: str
    launch: str
    lines: list[str]


class Telemetry(msgspec.Struct, frozen=True, tag="telemetry"):
    seq: int
    at: float
    """Unix seconds on the node's clock."""
    samples: list[Sample]


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat"):
    at: float


class AgentWelcome(msgspec.Struct, frozen=True, tag="welcome"):
    node: str
    heartbeat_seconds: float


class Desired(msgspec.Struct, frozen=True, tag="desired"):
    """Everything that should run on this node; anything else is stopped."""

    generation: int
    processes: list[ProcessSpec]


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    reason: str


FromAgent = AgentHello | Observed | LogLines | Telemetry | Heartbeat
ToAgent = AgentWelcome | Desired | Refused

_encoder = msgspec.msgpack.Encoder()
_from_agent: msgspec.msgpack.Decoder[FromAgent] = msgspec.msgpack.Decoder(FromAgent)
_to_agent: msgspec.msgpack.Decoder[ToAgent] = msgspec.msgpack.Decoder(ToAgent)


def encode(message: FromAgent | ToAgent) -> bytes:
    return _encoder.encode(message)


def decode_from_agent(payload: bytes) -> FromAgent:
    return _from_agent.decode(payload)


def decode_to_agent(payload: bytes) -> ToAgent:
    return _to_agent.decode(payload)
