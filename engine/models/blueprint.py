"""What every part of a decoder is built from."""

from dataclasses import dataclass

from engine.layers import KVCache
from engine.model_config import ModelConfig
from engine.models.weights import RankWeights
from engine.parallel import Mesh
from engine.shards import RankShare


@dataclass(frozen=True)
class Blueprint:
    """The model's shape, this rank's share of it, and what its layers have in common."""

    model: ModelConfig
    share: RankShare
    weights: RankWeights
    cache: KVCache
    mesh: Mesh

    def place(self, layer: int) -> int:
        """Where the cache of this rank keeps `layer`."""
        return layer - self.share.layers.start

    @property
    def adds_bias(self) -> bool:
        """Whether this rank adds the biases of row-parallel layers: their sum has them once."""
        return self.share.stage_rank == 0
