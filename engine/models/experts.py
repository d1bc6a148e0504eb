"""Builds a mixture of experts."""

from engine.layers.experts import MixtureOfExperts
from engine.layers.router import Router
from engine.model_config import Experts
from engine.models.blueprint import Blueprint
from engine.models.decoder import FeedForward
from engine.models.feed_forward import gated_mlp
from engine.parallel import Alone
from engine.spans import Span


def build_experts(blueprint: Blueprint, layer: int) -> FeedForward:
    """This rank's experts of one layer, or its columns of them, and the whole router."""
    experts = blueprint.model.experts
    if experts is None:
        raise ValueError(f"Layer {layer} has no experts.")
    share, apart = blueprint.share, Alone()
    held = share.experts
    parts = [
        gated_mlp(blueprint, layer, share.expert_columns, suffix=f".{expert}", group=apart)
        for expert in range(held.start, held.stop)
    ]
    shared = None
    if experts.shared_size:
        shared = gated_mlp(blueprint, layer, share.shared_columns, suffix="_shexp", group=apart)
    router = _router(blueprint, layer, experts)
    return MixtureOfExperts(router, parts, held, shared, blueprint.mesh.tp)


def _router(blueprint: Blueprint, layer: int, experts: Experts) -> Router:
    weights = blueprint.weights
    bias = weights.bias(layer, "exp_probs_b") if experts.correction_bias else None
    router = Router(weights.rows(layer, "ffn_gate_inp", Span(0, experts.count)), bias, experts)
    weights.nbytes += router.nbytes
    return router
