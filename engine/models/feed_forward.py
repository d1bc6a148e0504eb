"""Builds the dense MLP."""

import torch

from engine.layers import GatedMLP
from engine.models.blueprint import Blueprint
from engine.parallel import Group
from engine.spans import Span


def build_mlp(blueprint: Blueprint, layer: int) -> GatedMLP:
    """This rank's columns of one layer."""
    span = blueprint.share.intermediate
    return gated_mlp(blueprint, layer, span, bias=blueprint.model.mlp_bias)


def gated_mlp(
    blueprint: Blueprint,
    layer: int,
    span: Span,
    *,
    suffix: str = "",
    bias: bool = False,
    group: Group | None = None,
) -> GatedMLP:
    """`suffix` tells the MLPs of a layer apart in the names of their tensors; `group` sums the
    ranks' parts, by default the tensor-parallel one."""
    weights = blueprint.weights
    parts = [f"ffn_gate{suffix}", f"ffn_up{suffix}"]
    gate_up_bias = torch.cat([weights.bias(layer, part, span) for part in parts]) if bias else None
    down_bias = weights.bias(layer, f"ffn_down{suffix}") if bias else None
    if not blueprint.adds_bias:
        down_bias = None
    return GatedMLP(
        gate_up=weights.pack_rows(layer, parts, span, gate_up_bias),
        down=weights.pack_columns(layer, f"ffn_down{suffix}", span, down_bias),
        group=group or blueprint.mesh.tp,
        activation=blueprint.model.activation,
    )
