"""Which part of a model each rank holds. Pure arithmetic: no torch, no I/O.

The ranks of a stage split attention by KV-head groups, unevenly when they must: 3 KV heads over two
ranks give 2 + 1. More ranks than KV heads hold some of them twice (engine/heads.py). Latent
attention is split by its query heads, and every rank holds the one latent. Dense MLPs are split in
whole quantisation blocks, the vocabulary by rows. Whole experts are split over the plan's `ep`
groups, and the columns of each over the `tp` ranks of its group.

Everything is in proportion to the ranks' weights, and even without. Each half of a layer ends in an
all-reduce that waits for the slowest rank, so every half is balanced by itself: a lighter MLP
cannot repay a heavier attention. Layers are contiguous, and without weights earlier stages take the
remainder because the last one also holds the output head.
"""

from collections.abc import Sequence

import msgspec

from engine.config import ParallelPlan
from engine.errors import PlanError
from engine.errors import gettext_noop as _
from engine.heads import split_heads
from engine.model_config import Experts, ModelConfig
from engine.spans import Span, split_by_weight

__all__ = [
    "MLP_UNIT",
    "RankShare",
    "Span",
    "check_plan",
    "kv_bytes_per_token",
    "kv_elements_per_token",
    "rank_share",
    "rank_shares",
]

MLP_UNIT = 32
"""Columns of the MLP are split in multiples of this: one quantisation block."""

NOTHING = Span(0, 0)


class RankShare(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's part of a model."""

    rank: int
    stage: int
    stage_rank: int
    """Its place among the ranks that share its layers."""
    layers: Span
    kv_heads: Span
    """Other ranks hold the same one where there are more ranks than KV heads."""
    heads: Span
    """Query heads that read `kv_heads`: all of them, or this rank's part."""
    intermediate: Span
    """Columns of a dense MLP."""
    experts: Span
    """Experts that this rank computes; empty without any."""
    expert_columns: Span
    """Columns of each of these; the other ranks of its group hold the rest."""
    shared_columns: Span
    """Columns of the MLP beside the experts; empty without one."""
    vocab: Span
    """Rows of the embedding (first stage) and of the output head (last stage)."""
    first_stage: bool
    last_stage: bool


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
    _check_width(model, plan)
    if model.experts is not None:
        _check_experts(model.experts, plan)
    if plan.pp > model.num_layers:
        raise PlanError(
            _(
                "pp=%(pp)s needs at least %(pp)s layers, but this model has %(num_layers)s; use "
                "pp=%(num_layers)s or less."
            ),
            pp=plan.pp,
            num_layers=model.num_layers,
        )


def _check_width(model: ModelConfig, plan: ParallelPlan) -> None:
    """Each rank of a stage takes at least a query head, a block of columns and a row."""
    if plan.width > model.num_heads:
        raise PlanError(
            _(
                "%(ranks)s ranks (tp × ep) are to share each layer, but this model has "
                "%(heads)s query heads; make tp × ep %(heads)s or less, and use pp for more boxes."
            ),
            ranks=plan.width,
            heads=model.num_heads,
        )
    for columns in _columns_over_all(model):
        blocks = _blocks(columns)
        if plan.width > blocks:
            raise PlanError(
                _(
                    "%(ranks)s ranks (tp × ep) cannot split an MLP of %(columns)s columns in "
                    "blocks of %(block)s; make tp × ep %(blocks)s or less, and use pp for more "
                    "boxes."
                ),
                ranks=plan.width,
                columns=columns,
                block=MLP_UNIT,
                blocks=blocks,
            )
    if plan.width > model.vocab_size:
        raise PlanError(
            _(
                "%(ranks)s ranks (tp × ep) cannot split a vocabulary of %(vocab_size)s; make "
                "tp × ep %(vocab_size)s or less."
            ),
            ranks=plan.width,
            vocab_size=model.vocab_size,
        )


def _check_experts(experts: Experts, plan: ParallelPlan) -> None:
    blocks = _blocks(experts.intermediate_size)
    if plan.tp > blocks:
        raise PlanError(
            _(
                "tp=%(tp)s cannot split experts of %(columns)s columns in blocks of %(block)s; use "
                "tp=%(blocks)s or less, and ep for more ranks."
            ),
            tp=plan.tp,
            columns=experts.intermediate_size,
            block=MLP_UNIT,
            blocks=blocks,
        )
    if plan.ep > experts.count:
        raise PlanError(
            _(
                "ep=%(ep)s needs at least %(ep)s experts, but this model has %(count)s; use "
                "ep=%(count)s or less, and tp for more ranks."
            ),
            ep=plan.ep,
            count=experts.count,
        )


def _columns_over_all(model: ModelConfig) -> list[int]:
    """Widths of the MLPs that all ranks of a stage split; each is split on its own."""
    experts = model.experts
    if experts is None:
        return [model.intermediate_size]
    dense = [model.intermediate_size] if experts.dense_layers else []
    shared = [experts.shared_size] if experts.shared_size else []
    return [*dense, *shared]


def _blocks(columns: int) -> int:
    return -(-columns // MLP_UNIT)


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
    stage, place = plan.stage(rank), plan.stage_rank(rank)
    weights = _weights(plan, stage)
    kv_heads, heads = split_heads(model, weights)[place]
    experts, expert_columns = _expert_part(model.experts, plan, weights, place)
    shared = model.experts.shared_size if model.experts else 0
    totals = [sum(_weights(plan, each)) for each in range(plan.pp)]
    return RankShare(
        rank=rank,
        stage=stage,
        stage_rank=place,
        layers=split_by_weight(model.num_layers, totals)[stage],
        kv_heads=kv_heads,
        heads=heads,
        intermediate=_split_columns(model.intermediate_size, weights)[place],
        experts=experts,
        expert_columns=expert_columns,
        shared_columns=_split_columns(shared, weights)[place],
        vocab=split_by_weight(model.vocab_size, weights)[place],
        first_stage=stage == 0,
        last_stage=stage == plan.pp - 1,
    )


def _weights(plan: ParallelPlan, stage: int) -> Sequence[int]:
    """Of the ranks that share the layers of one stage."""
    weights = plan.weights or (1,) * plan.world_size
    return weights[stage * plan.width : (stage + 1) * plan.width]


def _split_columns(columns: int, weights: Sequence[int]) -> list[Span]:
    blocks = split_by_weight(_blocks(columns), weights)
    ends = [span.times(MLP_UNIT) for span in blocks]
    return [Span(min(span.start, columns), min(span.stop, columns)) for span in ends]


def _expert_part(
    experts: Experts | None, plan: ParallelPlan, weights: Sequence[int], place: int
) -> tuple[Span, Span]:
    """The experts of this rank's group, and this rank's columns of each."""
    if experts is None:
        return NOTHING, NOTHING
    groups = [weights[first : first + plan.tp] for first in range(0, plan.width, plan.tp)]
    group, member = divmod(place, plan.tp)
    held = split_by_weight(experts.count, [sum(each) for each in groups])[group]
    return held, _split_columns(experts.intermediate_size, groups[group])[member]


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
