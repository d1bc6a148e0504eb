"""Executes steps on one rank: mirror, inputs, forward, sampling. Knows nothing of sockets."""

import time
from collections.abc import Callable

from engine.config import BLOCK_SIZE, EngineConfig
from engine.model_config import ModelConfig
from engine.models import Decoder
from engine.protocol.steps import Admit, Row, Sampling, Step, Timings
from engine.runner.batch import BatchRow, build_batch
from engine.runner.grammar import Grammars, Vocabulary
from engine.runner.mirror import Mirror
from engine.runner.outcome import Outcome
from engine.runner.readout import Draws, Readout, Scores
from engine.runner.sampler import Sampler

WARM_TOKENS = 256
"""Of the prompt computed at start: longer ones bring little and take their time."""
_WARM = Admit(Sampling(top_p=0.9, logprobs=1))


class Runner:
    def __init__(
        self,
        model: ModelConfig,
        config: EngineConfig,
        decoder: Decoder,
        epoch: int,
        token_count: int,
        vocabulary: Callable[[], Vocabulary],
    ) -> None:
        """`vocabulary` is called at the first grammar, on the output rank alone."""
        self._config = config
        self._decoder = decoder
        self._sampler = Sampler(token_count, Grammars(vocabulary))
        self._readout = Readout(decoder, self._sampler)
        limit = max(config.token_budget, config.max_batch_size)
        self.mirror = Mirror(epoch, config.num_kv_blocks, model.vocab_size, limit)

    def warm_up(self) -> None:
        """A long prompt and the largest decode batch, through every layer, collective and the
        sampler, so that the first request finds kernels chosen and the allocator's memory mapped.

        It writes only to blocks that are cleared when they are first handed out.
        """
        blocks = self._config.num_kv_blocks
        length = min(self._config.token_budget, blocks * BLOCK_SIZE, WARM_TOKENS)
        prompt = Row(0, [0] * length, 0, list(range(-(-length // BLOCK_SIZE))), True)
        decodes = [
            Row(seq, [0], 1, [seq % blocks], True) for seq in range(self._config.max_batch_size)
        ]
        for rows in ([prompt], decodes, decodes[:1]):
            self._compute(rows, [row.new_blocks for row in rows], [_WARM] * len(rows))
        self._reset_clocks()

    def run(self, step: Step) -> Outcome:
        """One step; raises ProtocolError before any collective when it does not follow."""
        began = time.perf_counter()
        self._decoder.cache.clear(self.mirror.apply(step))
        self._sampler.forget(step.released)
        held = [self.mirror.sequences[row.seq] for row in step.rows]
        if not held:
            return Outcome(self._timings(began))
        blocks = [sequence.blocks for sequence in held]
        draws, scores = self._compute(step.rows, blocks, [sequence.admit for sequence in held])
        return Outcome.of(self._timings(began), draws, scores)

    def _compute(
        self, rows: list[Row], blocks: list[list[int]], admits: list[Admit]
    ) -> tuple[Draws, Scores]:
        """One pass; what was drawn and scored is empty on every rank but the output rank."""
        batch_rows = [
            BatchRow(row.tokens, row.start, table, row.sample)
            for row, table in zip(rows, blocks, strict=True)
        ]
        batch = build_batch(batch_rows, self._decoder.reach)
        hidden = self._decoder.hidden(batch.inputs)
        if hidden is None:
            return {}, {}
        scores = self._readout.score(rows, admits, batch, hidden)
        return self._readout.draw(rows, admits, batch, hidden), scores

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
