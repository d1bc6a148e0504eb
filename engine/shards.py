"""Which part of a model each rank holds. Pure arithmetic: no torch, no I/O.

Attention is split by KV-head groups, unevenly when it must be: 3 KV heads over tp=2 give 2 + 1. The
MLP is split evenly in whole quantisation blocks: each half of a layer ends in an all-reduce that
waits for the slowest rank, so every half is balanced by itself and a lighter MLP cannot repay a
heavier attention. The vocabulary is split evenly, layers are contiguous, and earlier stages take
the remainder because the last one also holds the output head.
"""

from itertools import pairwise

import msgspec

from engine.config import ModelConfig, ParallelPlan
from engine.errors import PlanError
from engine.errors import gettext_noop as _

MLP_UNIT = 32
"""Columns of the MLP are split in multiples of this: one quantisation block."""


class Span(msgspec.Struct, frozen=True, array_like=True):
    """Half-open range `start <= i < stop`."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start

    def times(self, factor: int) -> "Span":
        """The span of items `factor` times finer, e.g. heads to their rows."""
        return Span(self.start * factor, self.stop * factor)

    def __contains__(self, item: int) -> bool:
        return self.start <= item < self.stop


class RankShare(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's part of a model."""

    rank: int
    stage: int
    tp_rank: int
    layers: Span
    kv_heads: Span
    heads: Span
    """Query heads: exactly the groups of `kv_heads`."""
    intermediate: Span
    """Columns of the MLP."""
    vocab: Span
    """Rows of the embedding (first stage) and of the output head (last stage)."""
    first_stage: bool
    last_stage: bool


def split_evenly(total: int, parts: int) -> list[Span]:
    """`parts` contiguous spans over `total` items; the first `total % parts` are one longer."""
    base, extra = divmod(total, parts)
    edges = [part * base + min(part, extra) for part in range(parts + 1)]
    return [Span(start, stop) for start, stop in pairwise(edges)]


def check_plan(model: ModelConfig, plan: ParallelPlan) -> None:
    """Raise PlanError, with the remedy, when `plan` cannot split `model`."""
    if model.num_heads % model.num_kv_heads:
        raise PlanError(
            _(
                "%(num_heads)s query heads do not share %(num_kv_heads)s KV heads evenly; this "
                "model cannot be split."
            ),
            num_heads=model.num_heads,
            num_kv_heads=model.num_kv_heads,
        )
    if plan.tp > model.num_kv_heads:
        raise PlanError(
            _(
                "tp=%(tp)s needs at least %(tp)s KV heads, but this model has %(num_kv_heads)s; "
                "use tp=%(num_kv_heads)s or less, and pp for more boxes."
            ),
            tp=plan.tp,
            num_kv_heads=model.num_kv_heads,
        )
    units = -(-model.intermediate_size // MLP_UNIT)
    if plan.tp > units:
        raise PlanError(
            _(
                "tp=%(tp)s cannot split an MLP of %(columns)s columns in blocks of %(block)s; use "
                "tp=%(units)s or less."
            ),
            tp=plan.tp,
            columns=model.intermediate_size,
            block=MLP_UNIT,
            units=units,
        )
    if plan.tp > model.vocab_size:
        raise PlanError(
            _("tp=%(tp)s cannot split a vocabulary of %(vocab_size)s; use a smaller tp."),
            tp=plan.tp,
            vocab_size=model.vocab_size,
        )
    if plan.pp > model.num_layers:
        raise PlanError(
            _(
                "pp=%(pp)s needs at least %(pp)s layers, but this model has %(num_layers)s; use "
                "pp=%(num_layers)s or less."
            ),
            pp=plan.pp,
            num_layers=model.num_layers,
        )


def rank_share(model: ModelConfig, plan: ParallelPlan, rank: int) -> RankShare:
    """What global rank `rank` holds; raises PlanError when the plan does not fit the model."""
    check_plan(model, plan)
    if not 0 <= rank < plan.world_size:
        raise PlanError(
            _("Plan %(plan)s has ranks 0 to %(last)s; there is no %(rank)s."),
            plan=str(plan),
            last=plan.world_size - 1,
            rank=rank,
        )
    stage, tp_rank = plan.stage(rank), plan.tp_rank(rank)
    kv_heads = split_evenly(model.num_kv_heads, plan.tp)[tp_rank]
    units = split_evenly(-(-model.intermediate_size // MLP_UNIT), plan.tp)[tp_rank]
    columns = units.times(MLP_UNIT)
    return RankShare(
        rank=rank,
        stage=stage,
        tp_rank=tp_rank,
        layers=split_evenly(model.num_layers, plan.pp)[stage],
        kv_heads=kv_heads,
        heads=kv_heads.times(model.kv_group_size),
        intermediate=Span(columns.start, min(columns.stop, model.intermediate_size)),
        vocab=split_evenly(model.vocab_size, plan.tp)[tp_rank],
        first_stage=stage == 0,
        last_stage=stage == plan.pp - 1,
    )


def rank_shares(model: ModelConfig, plan: ParallelPlan) -> list[RankShare]:
    """Every rank's share, in rank order."""
    return [rank_share(model, plan, rank) for rank in range(plan.world_size)]


def layer_parameters(model: ModelConfig, share: RankShare) -> int:
    """Weights of the linear layers of one decoder layer that `share` holds."""
    queries = share.heads.size * model.head_dim
    keys = share.kv_heads.size * model.head_dim
    return model.hidden_size * (2 * queries + 2 * keys + 3 * share.intermediate.size)


def share_parameters(model: ModelConfig, share: RankShare) -> int:
    """All weights `share` holds: linear layers, norms, embedding and output head."""
    norms = 2 * model.hidden_size * share.layers.size
    total = share.layers.size * layer_parameters(model, share) + norms
    table = share.vocab.size * model.hidden_size
    if share.last_stage:
        total += table + model.hidden_size
    if share.first_stage and not (share.last_stage and model.tie_embeddings):
        total += table
    return total


def kv_bytes_per_token(model: ModelConfig, share: RankShare, element_bytes: int = 4) -> int:
    """Bytes of keys and values one token takes on this rank (fp32 by default)."""
    return 2 * share.layers.size * share.kv_heads.size * model.head_dim * element_bytes
