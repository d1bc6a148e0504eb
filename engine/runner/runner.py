"""Executes steps on one rank: mirror, inputs, forward, sampling. Knows nothing of sockets."""

from collections.abc import Callable

import torch
from torch import Tensor

from engine.config import BLOCK_SIZE, EngineConfig
from engine.errors import ProtocolError
from engine.errors import gettext_noop as _
from engine.model_config import ModelConfig
from engine.models import Decoder
from engine.protocol.steps import PENDING, Admit, Row, Sampling, Step
from engine.runner.batch import BatchRow, build_batch
from engine.runner.clock import Clock
from engine.runner.decoding import decode_graphs
from engine.runner.grammar import Grammars, Vocabulary
from engine.runner.mirror import Mirror
from engine.runner.outcome import Outcome
from engine.runner.readout import Draws, Readout, Scores
from engine.runner.sampler import Sampler

WARM_TOKENS = 256
"""Of the prompt computed at start: longer ones bring little and take their time."""
WARM_TOKENS_AGAIN = 16
"""Where the same weights were served a moment before, and somebody waits."""
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
        self._graphs = decode_graphs(decoder, config.max_batch_size)
        self._clock = Clock(decoder.mesh)
        self._drawn: Draws = {}
        """By the last step; empty on every rank but the output rank."""
        limit = max(config.token_budget, config.max_batch_size)
        self.mirror = Mirror(epoch, config.num_kv_blocks, model.vocab_size, limit)

    def warm_up(self, full: bool = True) -> None:
        """A prompt and decode batches through every layer, collective and the sampler, so that the
        first request finds kernels chosen and the allocator's memory mapped.

        `full` is with a long prompt and the largest batch; every rank is to be told the same. It
        writes only to blocks that are cleared when they are first handed out.
        """
        blocks = self._config.num_kv_blocks
        most = WARM_TOKENS if full else WARM_TOKENS_AGAIN
        length = min(self._config.token_budget, blocks * BLOCK_SIZE, most)
        prompt = Row(0, [0] * length, 0, list(range(-(-length // BLOCK_SIZE))), True)
        decodes = [
            Row(seq, [0], 1, [seq % blocks], True) for seq in range(self._config.max_batch_size)
        ]
        counts = [len(decodes), 1]
        if self._graphs is not None:
            counts = self._graphs.buckets.row_counts()
        steps = [decodes[:count] for count in counts] if full else [decodes[:1]]
        for rows in ([prompt], *steps):
            self._compute(rows, [row.new_blocks for row in rows], [_WARM] * len(rows))
        self._clock.restart()

    def run(self, step: Step) -> Outcome:
        """One step; raises ProtocolError before any collective when it does not follow."""
        self._clock.begin()
        self._decoder.cache.clear(self.mirror.apply(step))
        self._sampler.forget(step.released)
        held = [self.mirror.sequences[row.seq] for row in step.rows]
        if not held:
            return Outcome(self._clock.end())
        blocks = [sequence.blocks for sequence in held]
        self._drawn, scores = self._compute(step.rows, blocks, [s.admit for s in held])
        return Outcome.of(self._clock.end(), self._drawn, scores)

    def _compute(
        self, rows: list[Row], blocks: list[list[int]], admits: list[Admit]
    ) -> tuple[Draws, Scores]:
        """One pass; what was drawn and scored is empty on every rank but the output rank."""
        activity = self._decoder.mesh.activity
        activity.at("compute")
        batch_rows = [
            BatchRow(tokens, row.start, table, row.sample)
            for row, tokens, table in zip(rows, self._tokens(rows), blocks, strict=True)
        ]
        hidden, firsts = self._hidden(batch_rows)
        if hidden is None:
            activity.at("")
            return {}, {}
        activity.at("sample")
        scores = self._readout.score(rows, admits, firsts, hidden)
        draws = self._readout.draw(rows, admits, firsts, hidden)
        activity.at("")
        return draws, scores

    def _hidden(self, rows: list[BatchRow]) -> tuple[Tensor | None, list[int]]:
        """Hidden states, on the last stage's ranks, and where each row's begin."""
        captured = None if self._graphs is None else self._graphs.hidden(rows)
        if captured is not None:
            return captured, list(range(len(rows)))
        batch = build_batch(rows, self._decoder.reach)
        return self._decoder.hidden(batch.inputs), batch.firsts

    def _tokens(self, rows: list[Row]) -> list[list[int]]:
        """Of every row, with what the step before drew, which the output rank tells the others."""
        pending = [row.seq for row in rows if row.tokens[0] == PENDING]
        if not pending:
            return [row.tokens for row in rows]
        if self._config.plan.pp > 1:
            raise ProtocolError(_("A pipeline computes no token that is still being drawn."))
        own = torch.tensor([self._drawn[seq].token for seq in pending]) if self._drawn else None
        shared = self._decoder.mesh.tp.broadcast(own, (len(pending),), 0)
        drawn = iter(shared.tolist())
        return [[next(drawn)] if row.tokens[0] == PENDING else row.tokens for row in rows]
