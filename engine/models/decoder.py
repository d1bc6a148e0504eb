"""A pre-norm decoder with grouped-query attention and a gated MLP: one rank's share of it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.layers import (
    Attention,
    Embedding,
    GatedMLP,
    KVCache,
    OutputHead,
    RMSNorm,
    Rotary,
    StepInputs,
)
from engine.parallel import Mesh


@dataclass(frozen=True)
class DecoderLayer:
    attention_norm: RMSNorm
    attention: Attention
    mlp_norm: RMSNorm
    mlp: GatedMLP

    def __call__(self, x: Tensor, inputs: StepInputs, angles: tuple[Tensor, Tensor]) -> Tensor:
        x = x + self.attention(self.attention_norm(x), inputs, angles)
        return x + self.mlp(self.mlp_norm(x))


@dataclass(frozen=True)
class Decoder:
    """`embedding` is there on the first stage, `norm` and `head` on the last."""

    layers: list[DecoderLayer]
    rotary: Rotary
    cache: KVCache
    mesh: Mesh
    hidden_size: int
    weight_bytes: int
    embedding: Embedding | None
    norm: RMSNorm | None
    head: OutputHead | None

    @torch.inference_mode()
    def __call__(self, inputs: StepInputs) -> Tensor | None:
        """One step. Logits (samples, vocabulary) on the output rank, None on every other.

        A stage takes its hidden states from the stage before and hands its own on.
        """
        x = self._enter(inputs)
        angles = self.rotary.angles(inputs.positions)
        for layer in self.layers:
            x = layer(x, inputs, angles)
        return self._leave(x, inputs)

    def _enter(self, inputs: StepInputs) -> Tensor:
        if self.embedding is not None:
            return self.embedding(inputs.tokens)
        pipeline = self.mesh.pipeline
        return pipeline.receive((len(inputs.tokens), self.hidden_size), pipeline.rank - 1)

    def _leave(self, x: Tensor, inputs: StepInputs) -> Tensor | None:
        if self.norm is None or self.head is None:
            self.mesh.pipeline.send(x, self.mesh.pipeline.rank + 1)
            return None
        if not len(inputs.sampled):
            return None
        return self.head(self.norm(x[inputs.sampled]))
