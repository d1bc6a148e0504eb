"""What starts a process: one spec, given as msgpack-JSON on its standard input.

A *launch* is one start of a replica: a fresh id and a fresh token, shared by its head and ranks.
The token never appears in a command line, an environment or a log.
"""

from typing import Literal

import msgspec

from engine.config import EngineConfig

Role = Literal["head", "rank"]

EPOCH_OVER = 75
"""Exit code of a rank whose epoch ended under it: nothing is wrong with it, start it again."""
GIVEN_UP = 76
"""Exit code of a head that gave its launch up, and of any process that another start cannot cure: a
setting that cannot work, a damaged checkpoint. It is not started again."""
AT_WORK = b"!"
"""A rank's pulse once it is ready: its end from then on is no failure to start."""


class Address(msgspec.Struct, frozen=True):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One engine process on one node, as the control plane wants it to be."""

    launch: str
    token: str
    role: Role
    rank: int | None = None
    """Global rank; None for the head."""
    driver: str = "embedded"
    model_path: str
    served_name: str
    revision: str = ""
    """Weights revision (content hash); part of the prefix cache's namespace."""
    config: EngineConfig
    host: str
    """This node's address for engine traffic: the only one this process listens on."""
    memory_floor: int = 0
    """Bytes of this node's memory that are to stay free."""
    planned_bytes: int | None = None
    """What the planner expects this process to need; None where nothing was planned."""
    http: Address
    """Where the head answers OpenAI-compatible HTTP."""
    control: Address
    """Where the head waits for its ranks."""

    @property
    def key(self) -> str:
        """Identity on its node: `launch:head` or `launch:rank0`."""
        return f"{self.launch}:{'head' if self.role == 'head' else f'rank{self.rank}'}"


def encode_spec(spec: ProcessSpec) -> bytes:
    return msgspec.json.encode(spec)


def decode_spec(data: bytes) -> ProcessSpec:
    return msgspec.json.decode(data, type=ProcessSpec)
