"""One rank's runner inside the test process: no sockets, a whole model."""

from pathlib import Path

import torch

from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig
from engine.device import choose_device
from engine.kernels import choose_linear
from engine.models import Decoder, load_decoder
from engine.parallel import Alone, Mesh
from engine.protocol.steps import Result, Step
from engine.runner import Runner
from engine.shards import rank_share
from engine.text.tokenizer import TextTokenizer
from tests.engine.step_maker import StepMaker


def load_alone(path: Path, config: EngineConfig) -> Decoder:
    """The whole model on one rank."""
    return load_rank(path, config, 0, Mesh(Alone(), Alone(), "none"))


def load_rank(path: Path, config: EngineConfig, rank: int, mesh: Mesh) -> Decoder:
    """One rank's share of a plan."""
    torch.set_num_threads(1)
    checkpoint = open_checkpoint(path)
    share = rank_share(checkpoint.config, config.plan, rank)
    _, linear = choose_linear(config)
    device = choose_device(config, 0)
    return load_decoder(
        checkpoint, config, share, linear, mesh, lambda fraction, detail: None, device
    )


class LocalRunner(StepMaker):
    def __init__(self, path: Path, config: EngineConfig) -> None:
        super().__init__(config)
        checkpoint = self.checkpoint = open_checkpoint(path)
        self.decoder = load_alone(path, config)
        self.runner = Runner(
            checkpoint.config,
            config,
            self.decoder,
            self.epoch,
            checkpoint.token_count,
            lambda: TextTokenizer(checkpoint.tokenizer),
        )
        self.runner.warm_up()

    def run(self, step: Step) -> Result:
        return self.runner.run(step).result(step.n)
