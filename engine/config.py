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

Transport = Literal["tcp", "gloo"]
TRANSPORTS: tuple[Transport, ...] = ("tcp", "gloo")

BLOCK_SIZE = 16
"""Tokens per KV block."""


class ParallelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How one replica is split: `tp` ways inside a layer, `pp` stages of contiguous layers.

    Global rank = stage * tp + tp_rank.
    """

    tp: int = 1
    pp: int = 1

    def __post_init__(self) -> None:
        for name in ("tp", "pp"):
            degree = getattr(self, name)
            if not 1 <= degree <= 64:
                raise PlanError(
                    _("%(setting)s must be between 1 and 64, not %(degree)s."),
                    setting=name,
                    degree=degree,
                )

    @classmethod
    def parse(cls, text: str) -> "ParallelPlan":
        """Read `tp=2,pp=1`; an unknown key or a non-integer raises PlanError."""
        degrees: dict[str, int] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            key, _eq, value = part.partition("=")
            if key not in ("tp", "pp") or not value.isdecimal():
                raise PlanError(
                    _("Cannot read %(part)r in plan %(text)r; write it as tp=2,pp=1."),
                    part=part,
                    text=text,
                )
            degrees[key] = int(value)
        return cls(**degrees)

    @property
    def world_size(self) -> int:
        return self.tp * self.pp

    def stage(self, rank: int) -> int:
        return rank // self.tp

    def tp_rank(self, rank: int) -> int:
        return rank % self.tp

    def __str__(self) -> str:
        return f"tp={self.tp},pp={self.pp}"


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
    """KV capacity in tokens, rounded down to whole blocks."""
    threads_per_rank: int = 1
    transport: Transport = "tcp"
    """What carries collectives: plain sockets, or torch.distributed's gloo (slower, see
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
