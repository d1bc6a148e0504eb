"""Executes steps on one rank: mirror, inputs, forward, sampling. Knows nothing of sockets."""

import time
from dataclasses import dataclass

from torch import Tensor

from engine.config import BLOCK_SIZE, EngineConfig
from engine.model_config import ModelConfig
from engine.models import Decoder
from engine.protocol.steps import Row, Sampling, Step, Timings
from engine.runner.batch import Batch, BatchRow, build_batch
from engine.runner.mirror import Mirror
from engine.runner.sampler import Draws, sample


@dataclass(frozen=True)
class Outcome:
    """What a step gave. `tokens` and `failed` are empty on every rank but the output rank."""

    tokens: list[int]
    failed: list[int]
    timings: Timings


class Runner:
    def __init__(
        self,
        model: ModelConfig,
        config: EngineConfig,
        decoder: Decoder,
        epoch: int,
        token_count: int,
    ) -> None:
        self._model = model
        self._config = config
        self._decoder = decoder
        self._token_count = token_count
        limit = max(config.token_budget, config.max_batch_size)
        self.mirror = Mirror(epoch, config.num_kv_blocks, model.vocab_size, limit)

    def warm_up(self) -> None:
        """One prefill and one decode pass through every layer and collective.

        It writes only to blocks that are cleared when they are first handed out.
        """
        for tokens, start in (([0] * min(BLOCK_SIZE, self._config.token_budget), 0), ([0], 1)):
            row = BatchRow(tokens, start, [0], sample=True)
            self._forward([row])
        self._reset_clocks()

    def run(self, step: Step) -> Outcome:
        """One step; raises ProtocolError before any collective when it does not follow."""
        began = time.perf_counter()
        self._decoder.cache.clear(self.mirror.apply(step))
        if not step.rows:
            return Outcome([], [], self._timings(began))
        logits, batch = self._forward([self._row(row) for row in step.rows])
        if logits is None:
            return Outcome([], [], self._timings(began))
        tokens, failed = self._sample(step, logits, batch)
        return Outcome(tokens, failed, self._timings(began))

    def _row(self, row: Row) -> BatchRow:
        return BatchRow(row.tokens, row.start, self.mirror.sequences[row.seq].blocks, row.sample)

    def _forward(self, rows: list[BatchRow]) -> tuple[Tensor | None, Batch]:
        batch = build_batch(rows, self._decoder.reach)
        return self._decoder(batch.inputs), batch

    def _sample(self, step: Step, logits: Tensor, batch: Batch) -> tuple[list[int], list[int]]:
        """Tokens in row order, and the sequences whose logits were not finite."""
        rows = [step.rows[index] for index in batch.sampled_rows]
        settings: list[Sampling] = [self.mirror.sequences[row.seq].sampling for row in rows]
        positions = [row.start + len(row.tokens) for row in rows]
        draws: Draws = sample(logits, settings, positions, self._token_count)
        by_row = dict(zip(batch.sampled_rows, draws.tokens, strict=True))
        failed = [row.seq for row, finite in zip(rows, draws.finite, strict=True) if not finite]
        return [by_row[index] for index in sorted(by_row)], failed

    def _timings(self, began: float) -> Timings:
        total = time.perf_counter() - began
        communicate = self._reset_clocks()
        return Timings(total, max(0.0, total - communicate), communicate)

    def _reset_clocks(self) -> float:
        """Seconds spent communicating since the last call."""
        mesh = self._decoder.mesh
        seconds = mesh.tp.seconds + mesh.pipeline.seconds
        mesh.tp.seconds = mesh.pipeline.seconds = 0.0
        return seconds
