"""Architecture name to builder."""

from typing import Protocol

from engine.checkpoint import Checkpoint
from engine.checkpoint.tensors import rank_tensors
from engine.config import EngineConfig, ParallelPlan
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.kernels import LinearFactory
from engine.loader import Progress, WeightSource
from engine.model_config import ModelConfig
from engine.models.decoder import Decoder
from engine.models.llama import build_llama
from engine.parallel import Mesh
from engine.shards import RankShare


class Builder(Protocol):
    def __call__(
        self,
        model: ModelConfig,
        plan: ParallelPlan,
        share: RankShare,
        source: WeightSource,
        linear: LinearFactory,
        mesh: Mesh,
        num_blocks: int,
    ) -> Decoder: ...


BUILDERS: dict[str, Builder] = {"llama": build_llama}


def load_decoder(
    checkpoint: Checkpoint,
    config: EngineConfig,
    share: RankShare,
    linear: LinearFactory,
    mesh: Mesh,
    progress: Progress,
) -> Decoder:
    """Read and build one rank's share; raises CheckpointError."""
    model = checkpoint.config
    builder = BUILDERS.get(model.architecture)
    if builder is None:
        raise CheckpointError(
            _("%(file)s: no builder for %(architecture)r."),
            file=checkpoint.path.name,
            architecture=model.architecture,
        )
    with WeightSource(checkpoint, rank_tensors(model, share), progress) as source:
        decoder = builder(model, config.plan, share, source, linear, mesh, config.num_kv_blocks)
        source.finish()
    return decoder
