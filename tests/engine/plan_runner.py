"""All ranks of a plan as threads of the test: real runners over real shares, no processes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from torch import Tensor

from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig
from engine.models import Decoder
from engine.parallel import Mesh
from engine.protocol.steps import Result, Step
from engine.runner import Runner
from engine.text.tokenizer import TextTokenizer
from tests.engine.local_runner import load_rank
from tests.engine.step_maker import StepMaker
from tests.engine.thread_ranks import linked_meshes

SECONDS = 120.0


@dataclass(frozen=True)
class Watched(Decoder):
    """Keeps all logits that it gives."""

    seen: list[Tensor] = field(default_factory=list)

    def logits(self, hidden: Tensor, places: Tensor) -> Tensor | None:
        found = super().logits(hidden, places)
        if found is not None:
            self.seen.append(found.clone())
        return found


class PlanRunner(StepMaker):
    def __init__(self, path: Path, config: EngineConfig) -> None:
        super().__init__(config)
        self._path = path
        self._checkpoint = open_checkpoint(path)
        meshes = linked_meshes(config.plan)
        self._pool = ThreadPoolExecutor(len(meshes))
        loaded = self._pool.map(self._load, range(len(meshes)), meshes, timeout=SECONDS)
        self.decoders = list(loaded)
        self._runners = [self._runner(decoder) for decoder in self.decoders]

    def __enter__(self) -> "PlanRunner":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown()

    @property
    def logits(self) -> list[Tensor]:
        """Of each step that drew something, (samples, vocabulary)."""
        return self.decoders[self.config.plan.output_rank].seen

    def run(self, step: Step) -> Result:
        work = [self._pool.submit(runner.run, step) for runner in self._runners]
        outcomes = [each.result(SECONDS) for each in work]
        return outcomes[self.config.plan.output_rank].result(step.n)

    def _load(self, rank: int, mesh: Mesh) -> Watched:
        return Watched(**vars(load_rank(self._path, self.config, rank, mesh)))

    def _runner(self, decoder: Decoder) -> Runner:
        checkpoint = self._checkpoint
        return Runner(
            checkpoint.config,
            self.config,
            decoder,
            self.epoch,
            checkpoint.token_count,
            lambda: TextTokenizer(checkpoint.tokenizer),
        )
