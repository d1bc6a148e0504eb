"""Validated, frozen settings of one replica. No torch, no I/O."""

from typing import Literal

import msgspec

from engine.errors import ConfigError, PlanError
from engine.errors import gettext_noop as _

Dtype = Literal["fp32", "bf16", "int8", "int4", "fp8"]
DTYPES: tuple[Dtype, ...] = ("fp32", "bf16", "int8", "int4", "fp8")
"""Of the linear layers' weights. int8 and int4 multiply int8 activations."""

KvDtype = Literal["fp32", "bf16", "int8", "fp8"]
KV_DTYPES: tuple[KvDtype, ...] = ("fp32", "bf16", "int8", "fp8")

INT4_GROUPS = (32, 64, 128)
"""Columns that may share one scale."""

Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = ("cpu", "cuda")
"""What ranks compute on: their processor, or an NVIDIA GPU each."""

Transport = Literal["auto", "shm", "tcp", "gloo", "nccl"]
TRANSPORTS: tuple[Transport, ...] = ("auto", "shm", "tcp", "gloo", "nccl")

BLOCK_SIZE = 16
"""Tokens per KV block."""

DEGREES = ("tp", "pp", "ep", "dp")


class ParallelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is split: `pp` stages of contiguous layers, each held by `tp` × `ep` ranks.

    The ranks of a stage split attention, dense MLPs and the vocabulary among all of them. Of a
    layer with experts they form `ep` groups: a group holds whole experts, and its `tp` ranks split
    each of those by columns. `dp` replicas of all that are alike and know nothing of each other.

    Global rank = stage * width + stage_rank, and stage_rank = ep_rank * tp + tp_rank.
    """

    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1
    weights: tuple[int, ...] = ()
    """How much each rank of a replica is to carry, relative to the others; empty for all alike."""

    def __post_init__(self) -> None:
        for name in DEGREES:
            degree = getattr(self, name)
            if not 1 <= degree <= 64:
                raise PlanError(
                    _("%(setting)s must be between 1 and 64, not %(degree)s."),
                    setting=name,
                    degree=degree,
                )
        if self.weights and len(self.weights) != self.world_size:
            raise PlanError(
                _("The plan has %(ranks)s ranks but %(count)s weights; give one a rank, or none."),
                ranks=self.world_size,
                count=len(self.weights),
            )
        if any(not 1 <= weight <= 1000 for weight in self.weights):
            raise PlanError(_("Each rank's weight must be a whole number from 1 to 1000."))

    @classmethod
    def parse(cls, text: str) -> "ParallelPlan":
        """Read `tp=2,pp=1,weights=3:2`; an unknown key or a non-integer raises PlanError."""
        found: dict[str, int | tuple[int, ...]] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            key, _eq, value = part.partition("=")
            numbers = value.split(":") if key == "weights" else [value]
            if key not in (*DEGREES, "weights") or not all(map(str.isdecimal, numbers)):
                raise PlanError(
                    _("Cannot read %(part)r in plan %(text)r; write it as tp=2,pp=1."),
                    part=part,
                    text=text,
                )
            found[key] = tuple(map(int, numbers)) if key == "weights" else int(value)
        return msgspec.convert(found, cls)

    @property
    def width(self) -> int:
        """Ranks that share a layer."""
        return self.tp * self.ep

    @property
    def world_size(self) -> int:
        """Ranks of one replica."""
        return self.width * self.pp

    @property
    def output_rank(self) -> int:
        """The rank that draws the tokens: the first of the last stage."""
        return self.world_size - self.width

    def stage(self, rank: int) -> int:
        return rank // self.width

    def stage_rank(self, rank: int) -> int:
        """Its place among the ranks that share its layers."""
        return rank % self.width

    def __str__(self) -> str:
        text = f"tp={self.tp},pp={self.pp}"
        text += f",ep={self.ep}" if self.ep > 1 else ""
        text += f",dp={self.dp}" if self.dp > 1 else ""
        return text + (f",weights={':'.join(map(str, self.weights))}" if self.weights else "")


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one replica's engine; the same object reaches the head and every rank."""

    plan: ParallelPlan = ParallelPlan()
    dtype: Dtype = "fp32"
    kv_dtype: KvDtype = "fp32"
    int4_group: int = 32
    max_model_len: int | None = None
    """Longest sequence in tokens; None means the model's own context length."""
    max_batch_size: int = 32
    """Most rows in one step."""
    target_itl: float | None = None
    """Seconds a token may take; the batch cap moves between 1 and max_batch_size to keep it. None
    leaves the cap at max_batch_size."""
    token_budget: int = 256
    """Most tokens computed in one step, decode rows first."""
    kv_cache_tokens: int = 16384
    """Most KV capacity in tokens, rounded down to whole blocks. The head lowers it to what every
    rank's memory holds once the weights are loaded."""
    threads_per_rank: int = 1
    device: Device = "cpu"
    transport: Transport = "auto"
    """What carries collectives. `auto`: shared memory between ranks of one host, plain sockets
    between hosts, NCCL between GPUs. gloo is torch.distributed's, and slower (see
    engine/parallel/tcp.py)."""
    max_waiting: int = 512
    """Requests queued beyond this are refused with 503."""

    def __post_init__(self) -> None:
        self._check_choices()
        self._check_sizes()

    def _check_choices(self) -> None:
        choices: dict[str, tuple[object, ...]] = {
            "dtype": DTYPES,
            "kv_dtype": KV_DTYPES,
            "int4_group": INT4_GROUPS,
            "transport": TRANSPORTS,
            "device": DEVICES,
        }
        for name, known in choices.items():
            value = getattr(self, name)
            if value not in known:
                raise ConfigError(
                    _("%(setting)s must be one of %(choices)s, not %(value)r."),
                    setting=name,
                    choices=", ".join(map(str, known)),
                    value=value,
                )
        if self.transport == "nccl" and self.device != "cuda":
            raise ConfigError(
                _("The transport nccl joins GPUs; choose the device cuda, or another transport.")
            )
        if self.device == "cuda" and self.dtype == "int4":
            raise ConfigError(
                _("int4 weights run on processors only; on the device cuda choose int8 or fp8.")
            )

    def _check_sizes(self) -> None:
        if self.target_itl is not None and self.target_itl <= 0:
            raise ConfigError(_("target_itl must be more than 0 seconds."))
        for name in ("max_batch_size", "token_budget", "threads_per_rank", "max_waiting"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    _("%(setting)s must be at least 1, not %(value)s."),
                    setting=name,
                    value=getattr(self, name),
                )
        if self.token_budget < self.max_batch_size:
            raise ConfigError(
                _(
                    "token_budget (%(token_budget)s) must be at least max_batch_size "
                    "(%(max_batch_size)s), or decode rows would starve."
                ),
                token_budget=self.token_budget,
                max_batch_size=self.max_batch_size,
            )
        if self.kv_cache_tokens < 2 * BLOCK_SIZE:
            raise ConfigError(
                _("kv_cache_tokens must be at least %(least)s."), least=2 * BLOCK_SIZE
            )

    @property
    def num_kv_blocks(self) -> int:
        return self.kv_cache_tokens // BLOCK_SIZE
