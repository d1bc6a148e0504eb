"""Builds a mixture of experts."""

from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.models.blueprint import Blueprint
from engine.models.decoder import FeedForward


def build_experts(blueprint: Blueprint, layer: int) -> FeedForward:
    """This rank's columns of every expert of one layer."""
    raise CheckpointError(
        _("A mixture of experts (%(architecture)s) cannot be computed yet."),
        architecture=blueprint.model.architecture,
    )
