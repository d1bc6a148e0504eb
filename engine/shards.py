"""Which part of a model each rank holds. Pure arithmetic: no torch, no I/O.

Attention is split by KV-head groups, unevenly when it must be: 3 KV heads over tp=2 give 2 + 1.
Latent attention is split by its query heads, and every rank holds the one latent. The MLP, and
each expert's, is split evenly in whole quantisation blocks: each half of a layer ends in an
all-reduce that waits for the slowest rank, so every half is balanced by itself and a lighter MLP
cannot repay a heavier attention. The vocabulary is split evenly, layers are contiguous, and earlier
stages take the remainder because the last one also holds the output head.
"""

from itertools import pairwise

import msgspec

from engine.config import ParallelPlan
from engine.errors import PlanError
from engine.errors import gettext_noop as _
from engine.model_config import ModelConfig

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
    stage_rank: int
    """Its place among the ranks that share its layers."""
    layers: Span
    kv_heads: Span
    heads: Span
    """Query heads: exactly the groups of `kv_heads`; with latent attention this rank's own."""
    intermediate: Span
    """Columns of a dense MLP."""
    expert_columns: Span
    """Columns of every expert; empty without experts."""
    shared_columns: Span
    """Columns of the MLP beside the experts; empty without one."""
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
    if model.latent is not None:
        _check_latent(model, plan)
    elif plan.width > model.num_kv_heads:
        raise PlanError(
            _(
                "tp=%(tp)s needs at least %(tp)s KV heads, but this model has %(num_kv_heads)s; "
                "use tp=%(num_kv_heads)s or less, and pp for more boxes."
            ),
            tp=plan.width,
            num_kv_heads=model.num_kv_heads,
        )
    for columns in _mlp_widths(model):
        _check_columns(columns, plan)
    if plan.width > model.vocab_size:
        raise PlanError(
            _("tp=%(tp)s cannot split a vocabulary of %(vocab_size)s; use a smaller tp."),
            tp=plan.width,
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


def _check_latent(model: ModelConfig, plan: ParallelPlan) -> None:
    if plan.width > model.num_heads:
        raise PlanError(
            _(
                "tp=%(tp)s needs at least %(tp)s heads, but this model has %(heads)s; use "
                "tp=%(heads)s or less, and pp for more boxes."
            ),
            tp=plan.width,
            heads=model.num_heads,
        )


def _mlp_widths(model: ModelConfig) -> list[int]:
    """Widths of the MLPs that the model has; each is split on its own."""
    experts = model.experts
    if experts is None:
        return [model.intermediate_size]
    dense = [model.intermediate_size] if experts.dense_layers else []
    shared = [experts.shared_size] if experts.shared_size else []
    return [*dense, *shared, experts.intermediate_size]


def _check_columns(columns: int, plan: ParallelPlan) -> None:
    units = -(-columns // MLP_UNIT)
    if plan.width > units:
        raise PlanError(
            _(
                "tp=%(tp)s cannot split an MLP of %(columns)s columns in blocks of %(block)s; use "
                "tp=%(units)s or less."
            ),
            tp=plan.width,
            columns=columns,
            block=MLP_UNIT,
            units=units,
        )


def _split_columns(columns: int, plan: ParallelPlan, stage_rank: int) -> Span:
    units = split_evenly(-(-columns // MLP_UNIT), plan.width)[stage_rank].times(MLP_UNIT)
    return Span(min(units.start, columns), min(units.stop, columns))


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
    stage, stage_rank = plan.stage(rank), plan.stage_rank(rank)
    kv_heads, heads = _split_heads(model, plan, stage_rank)
    experts = model.experts
    return RankShare(
        rank=rank,
        stage=stage,
        stage_rank=stage_rank,
        layers=split_evenly(model.num_layers, plan.pp)[stage],
        kv_heads=kv_heads,
        heads=heads,
        intermediate=_split_columns(model.intermediate_size, plan, stage_rank),
        expert_columns=_split_columns(
            experts.intermediate_size if experts else 0, plan, stage_rank
        ),
        shared_columns=_split_columns(experts.shared_size if experts else 0, plan, stage_rank),
        vocab=split_evenly(model.vocab_size, plan.width)[stage_rank],
        first_stage=stage == 0,
        last_stage=stage == plan.pp - 1,
    )


def _split_heads(model: ModelConfig, plan: ParallelPlan, stage_rank: int) -> tuple[Span, Span]:
    """KV heads and query heads of one rank. The latent counts as one KV head, on every rank."""
    if model.latent is not None:
        return Span(0, 1), split_evenly(model.num_heads, plan.width)[stage_rank]
    kv_heads = split_evenly(model.num_kv_heads, plan.width)[stage_rank]
    return kv_heads, kv_heads.times(model.kv_group_size)


def rank_shares(model: ModelConfig, plan: ParallelPlan) -> list[RankShare]:
    """Every rank's share, in rank order."""
    return [rank_share(model, plan, rank) for rank in range(plan.world_size)]


def kv_elements_per_token(model: ModelConfig, share: RankShare) -> int:
    """Numbers that one token's keys and values, or its latents, take in this rank's cache."""
    if model.latent is not None:
        return share.layers.size * model.latent.cache_width
    return 2 * share.layers.size * share.kv_heads.size * model.head_dim


def kv_bytes_per_token(model: ModelConfig, share: RankShare, element_bytes: int = 4) -> int:
    """Bytes of keys and values one token takes on this rank (fp32 by default), without scales."""
    return kv_elements_per_token(model, share) * element_bytes
