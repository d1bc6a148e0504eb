"""A pre-norm decoder: attention, then an MLP or experts, in every layer. One rank's share of it."""

from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from engine.layers import Embedding, KVCache, OutputHead, Reach, RMSNorm, Rotary, StepInputs
from engine.layers.experts import MixtureOfExperts
from engine.parallel import Mesh

Angles = tuple[Tensor, Tensor]
"""Cosine and signed sine of every token, as Rotary gives them."""


class AttentionPart(Protocol):
    def __call__(self, x: Tensor, inputs: StepInputs, angles: Angles) -> Tensor:
        """(tokens, hidden) to the same, already summed over the tensor-parallel group."""
        ...


class FeedForward(Protocol):
    def __call__(self, x: Tensor) -> Tensor:
        """(tokens, hidden) to the same, already summed over the tensor-parallel group."""
        ...


@dataclass(frozen=True)
class DecoderLayer:
    attention_norm: RMSNorm
    attention: AttentionPart
    mlp_norm: RMSNorm
    mlp: FeedForward
    post_attention_norm: RMSNorm | None = None
    post_mlp_norm: RMSNorm | None = None
    sliding: bool = False
    """Whether it looks only as far back as the window, at the local rotary's angles."""

    def __call__(self, x: Tensor, inputs: StepInputs, angles: Angles) -> Tensor:
        return self.fed(self.attended(x, inputs, angles))

    def attended(self, x: Tensor, inputs: StepInputs, angles: Angles) -> Tensor:
        """The first half."""
        mixed = self.attention(self.attention_norm(x), inputs, angles)
        return x + (self.post_attention_norm(mixed) if self.post_attention_norm else mixed)

    def fed(self, x: Tensor) -> Tensor:
        """The second half."""
        fed = self.mlp(self.mlp_norm(x))
        return x + (self.post_mlp_norm(fed) if self.post_mlp_norm else fed)


@dataclass(frozen=True)
class Decoder:
    """`embedding` is there on the first stage, `norm` and `head` on the last."""

    layers: list[DecoderLayer]
    first_layer: int
    """What the model calls the first of them."""
    rotary: Rotary
    local_rotary: Rotary
    """Of the sliding layers; the same one where they do not differ."""
    cache: KVCache
    reach: Reach
    mesh: Mesh
    hidden_size: int
    weight_bytes: int
    embedding: Embedding | None
    norm: RMSNorm | None
    head: OutputHead | None

    def resized(self, blocks: int) -> "Decoder":
        """The same with room for another number of KV blocks; the cache is emptied."""
        self.cache.resize(blocks)
        reach = replace(self.reach, padding_block=self.cache.padding_block)
        return replace(self, reach=reach)

    def __call__(self, inputs: StepInputs) -> Tensor | None:
        """One step. Logits (samples, vocabulary) on the output rank, None on every other."""
        hidden = self.hidden(inputs)
        if hidden is None or not len(inputs.sampled):
            return None
        return self.logits(hidden, inputs.sampled)

    @torch.inference_mode()
    def hidden(self, inputs: StepInputs) -> Tensor | None:
        """Hidden states (tokens, hidden) after the last layer, on the last stage's ranks.

        A stage takes them from the stage before; all but the last hand them on and return None.
        """
        x = self._enter(inputs)
        angles = local = self.rotary.angles(inputs.positions)
        if self.local_rotary is not self.rotary:
            local = self.local_rotary.angles(inputs.positions)
        activity = self.mesh.activity
        for number, layer in enumerate(self.layers, self.first_layer):
            activity.at("compute", number)
            x = layer(x, inputs, local if layer.sliding else angles)
        activity.at("compute")
        if self.norm is not None:
            return x
        self.mesh.pipeline.send(x, self.mesh.pipeline.rank + 1)
        return None

    @torch.inference_mode()
    def logits(self, hidden: Tensor, places: Tensor) -> Tensor | None:
        """Logits (places, vocabulary) at these tokens of the step, on the output rank.

        A collective of the last stage: all of its ranks call it, in the same order.
        """
        if self.norm is None or self.head is None:
            return None
        return self.head(self.norm(hidden[places.to(hidden.device)]))

    def expert_tokens(self) -> tuple[int, ...]:
        """By expert: tokens that chose it so far, over these layers; empty where none has experts.

        Every rank of a stage counts all of them, its own and the others'.
        """
        counts = [part.mlp.tokens for part in self.layers if isinstance(part.mlp, MixtureOfExperts)]
        return tuple(torch.stack(counts).sum(dim=0).tolist()) if counts else ()

    def _enter(self, inputs: StepInputs) -> Tensor:
        if self.embedding is not None:
            return self.embedding(inputs.tokens)
        pipeline = self.mesh.pipeline
        return pipeline.receive((len(inputs.tokens), self.hidden_size), pipeline.rank - 1)
