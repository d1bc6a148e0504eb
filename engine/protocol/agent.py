"""Agent <-> control plane messages, msgpack over the agent's one outgoing WebSocket.

The agent opens `ws(s)://SERVER/ws/agent` with `Authorization: Bearer NODE_TOKEN`. The control plane
always sends the node's *full* desired state; the agent always reports its full observed state. Lost
messages cost delay, never state.
"""

from typing import Literal

import msgspec

from engine.errors import Said
from engine.protocol.firmware import FirmwareOrder, FirmwareState, Part
from engine.protocol.launch import ProcessSpec, Role
from engine.protocol.stats import EngineStats
from monitoring.packing import Layout, Numbers
from monitoring.sources import Source

AGENT_PROTOCOL_VERSION = 4

ProcessStatus = Literal["starting", "running", "exited"]


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """One device; its readings have the subject `gpu:<index>`."""

    index: int
    vendor: Literal["nvidia", "amd", "ascend", "intel"]
    name: str
    uuid: str = ""
    memory_bytes: int | None = None
    unified: bool = False
    """Its memory is the host's."""
    driver: str = ""


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """An address that this node has, and the network interface it is on."""

    name: str
    address: str


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
    accelerators: list[Accelerator] = []
    interfaces: list[Interface] = []
    """Without those that lead nowhere."""
    simulated: bool = False
    """Its readings are made up, by `manage.py simulate_fleet`."""
    boot_id: str = ""
    """Another one after each start of the node; empty where the system tells none."""


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


class LimitState(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one wish in `Limits`."""

    what: Literal["power", "clock", "batch"]
    target: str
    """`gpu:0`, or a launch."""
    value: float | None
    """What holds now; None when it could not be set."""
    reason: Said = Said()


class Observed(msgspec.Struct, frozen=True, tag="observed"):
    """The node's whole observed state. `generation` is the desired state it has acted on."""

    generation: int
    processes: list[ProcessState]
    engines: list[EngineStats] = []
    """One per head on this node: readiness, rank phases, counters."""
    limits: list[LimitState] = []
    orders: list[FirmwareState] = []


class Firmware(msgspec.Struct, frozen=True, tag="firmware"):
    """Every component of the node, as just read: after connecting, then when something changed."""

    parts: list[Part]


class LogLines(msgspec.Struct, frozen=True, tag="log"):
    """Lines of an engine process, or with the key `kernel` of the node's kernel."""

    key: str
    launch: str
    lines: list[str]


class Telemetry(msgspec.Struct, frozen=True, tag="telemetry"):
    """The readings of one instant. Kept by the agent until `Taken` names it; the same one may come
    several times, and later ones before earlier ones."""

    seq: int
    """Grows by one with each; a new agent starts from 0."""
    at: float
    """Unix seconds on the panel's clock, as far as the agent knows it."""
    layouts: list[Layout]
    """Those that `readings` name and this connection has not carried yet."""
    readings: list[tuple[int, Numbers]]
    """Layout's number, and the numbers in its order."""


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat"):
    at: float
    """Seconds on the agent's own count; comes back in `Pong`."""


class Pong(msgspec.Struct, frozen=True, tag="pong"):
    """Answers a heartbeat; four times give the clocks' difference (RFC 5905)."""

    asked_at: float
    heard_at: float
    """On the panel's clock, as is the next."""
    answered_at: float


class Taken(msgspec.Struct, frozen=True, tag="taken"):
    """Telemetry of these numbers is stored, or was refused for good."""

    seqs: list[int]


class AgentWelcome(msgspec.Struct, frozen=True, tag="welcome"):
    node: str
    heartbeat_seconds: float


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What quiet hours or a power cap ask of this node now; empty: nothing is held back."""

    power_watts: float | None = None
    """Of each accelerator."""
    clock_hertz: float | None = None
    """Of each accelerator, at most."""
    batch_caps: dict[str, int] = {}
    """Launch -> the most answers that its head may advance in one step."""
    why: str = ""
    """The name of the rule, for logs."""


class Desired(msgspec.Struct, frozen=True, tag="desired"):
    """Everything that should run on this node; anything else is stopped."""

    generation: int
    processes: list[ProcessSpec]
    sources: list[Source] = []
    limits: Limits = Limits()
    watch: list[str] = []
    """Addresses of the other nodes, to which the link is measured."""
    orders: list[FirmwareOrder] = []
    environment: dict[str, str] = {}
    """Added to what engine processes see; may hold secrets."""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    reason: str


FromAgent = AgentHello | Observed | LogLines | Telemetry | Heartbeat | Firmware
ToAgent = AgentWelcome | Desired | Refused | Taken | Pong

_encoder = msgspec.msgpack.Encoder()
_from_agent: msgspec.msgpack.Decoder[FromAgent] = msgspec.msgpack.Decoder(FromAgent)
_to_agent: msgspec.msgpack.Decoder[ToAgent] = msgspec.msgpack.Decoder(ToAgent)


def encode(message: FromAgent | ToAgent) -> bytes:
    return _encoder.encode(message)


def decode_from_agent(payload: bytes) -> FromAgent:
    return _from_agent.decode(payload)


def decode_to_agent(payload: bytes) -> ToAgent:
    return _to_agent.decode(payload)
