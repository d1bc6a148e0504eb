"""Builds multi-head latent attention."""

from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.models.blueprint import Blueprint
from engine.models.decoder import AttentionPart


def build_latent_attention(blueprint: Blueprint, layer: int) -> AttentionPart:
    """This rank's heads of one layer; every rank caches the one latent."""
    raise CheckpointError(
        _("Latent attention (%(architecture)s) cannot be computed yet."),
        architecture=blueprint.model.architecture,
    )
