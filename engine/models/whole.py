"""Whole halves of decoder layers in the engine's own kernels.

One call computes a norm, what follows it and the sum with what went in. Where a part has no kernel
(latent attention, experts, other number types) that half is computed with torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.kernels import Linear, SplitLinear
from engine.kernels.native import NativeLinear
from engine.layers import Attention, GatedMLP, KVCache, RMSNorm, StepInputs
from engine.models.decoder import Angles, DecoderLayer
from engine.native import types
from engine.native.library import Library, native
from engine.native.matrices import NativeMatrix, joined

LANES = 16
"""The kernels take heads of whole vectors."""
MOST_SHARING = 64
"""Query heads that may share a KV head."""


@dataclass
class Steps:
    """The step being computed, as the kernels read it; made once for all layers that look at it
    through the same angles."""

    inputs: StepInputs | None = None
    angles: Angles | None = None
    _step: types.Step = field(default_factory=types.Step)
    _kept: tuple[Tensor, ...] = ()

    def of(self, inputs: StepInputs, angles: Angles, hidden: int) -> types.Step:
        if inputs is not self.inputs or angles is not self.angles:
            self.inputs, self.angles = inputs, angles
            self._step = self._make(inputs, angles, hidden)
        return self._step

    def _make(self, inputs: StepInputs, angles: Angles, hidden: int) -> types.Step:
        rows = inputs.rows
        cosines, sines = (angle.contiguous() for angle in angles)
        told = (rows.firsts, rows.starts, rows.counts, rows.offsets, rows.tables, inputs.slots)
        self._kept = (cosines, sines, *told)
        pointers = [tensor.data_ptr() for tensor in (*told, cosines, sines)]
        count = (len(inputs.tokens), hidden, len(rows.firsts))
        return types.Step(*count, *pointers, cosines.shape[-1])


class AttentionHalf:
    """Norm, projections, rotary angles, cache and attention of one layer."""

    def __init__(self, norm: RMSNorm, attention: Attention, qkv: "Parts", output: "Parts") -> None:
        self._attention = attention
        self._version = -1
        self._kept: list[object] = [norm.weight, qkv.kept, output.kept]
        cache, norms = attention.cache, attention.norms
        self.described = types.Attention(
            norm=norm.weight.data_ptr(),
            eps=norm.eps,
            scale=attention.attend.scale,
            qkv=qkv.linear,
            output=output.linear,
            heads=attention.heads,
            kv_heads=cache.kv_heads,
            dim=cache.key_dim,
            query_norm=norms[0].weight.data_ptr() if norms else None,
            key_norm=norms[1].weight.data_ptr() if norms else None,
            head_eps=norms[0].eps if norms else 0.0,
            softcap=attention.attend.softcap or 0.0,
            window=attention.window or 0,
        )

    def current(self) -> types.Attention:
        """With the cache where it is now."""
        cache = self._attention.cache
        if cache.version != self._version:
            self.described.cache = _described(cache, self._attention.layer)
            self._version = cache.version
        return self.described


class MlpHalf:
    """Norm and gated MLP of one layer."""

    def __init__(self, norm: RMSNorm, mlp: GatedMLP, gate_up: "Parts", down: "Parts") -> None:
        self._kept: list[object] = [norm.weight, gate_up.kept, down.kept]
        self.described = types.Mlp(
            norm.weight.data_ptr(),
            norm.eps,
            types.ACTIVATIONS[mlp.activation],
            gate_up.linear,
            down.linear,
        )


@dataclass(frozen=True)
class NativeLayer(DecoderLayer):
    """A decoder layer of which at least one half is computed in one call."""

    library: Library | None = None
    attention_half: AttentionHalf | None = None
    mlp_half: MlpHalf | None = None
    steps: Steps = field(default_factory=Steps)

    def __call__(self, x: Tensor, inputs: StepInputs, angles: Angles) -> Tensor:
        assert self.library is not None
        step = self.steps.of(inputs, angles, x.shape[1])
        if self.attention_half and self.mlp_half and self._alone():
            self.library.layer(self.attention_half.current(), self.mlp_half.described, step, x)
            return x
        return self._feed(self._attend(x, inputs, angles, step), step)

    def _alone(self) -> bool:
        """Whether nothing is to be done between the halves."""
        assert isinstance(self.attention, Attention)
        return self.attention.group.size == 1 and not (
            self.post_attention_norm or self.post_mlp_norm
        )

    def _attend(self, x: Tensor, inputs: StepInputs, angles: Angles, step: types.Step) -> Tensor:
        if self.attention_half is None or self.library is None:
            return self.attended(x, inputs, angles)
        assert isinstance(self.attention, Attention)
        part = torch.empty_like(x)
        self.library.attention(self.attention_half.current(), step, x, part)
        mixed = self.attention.group.all_reduce(part)
        return x.add_(self.post_attention_norm(mixed) if self.post_attention_norm else mixed)

    def _feed(self, x: Tensor, step: types.Step) -> Tensor:
        if self.mlp_half is None or self.library is None:
            return self.fed(x)
        assert isinstance(self.mlp, GatedMLP)
        part = torch.empty_like(x)
        self.library.mlp(self.mlp_half.described, step, x, part)
        fed = self.mlp.group.all_reduce(part)
        return x.add_(self.post_mlp_norm(fed) if self.post_mlp_norm else fed)


class Parts:
    """A linear layer's matrices for the kernels."""

    def __init__(self, matrices: Sequence[NativeMatrix]) -> None:
        self.linear, parts = joined(matrices)
        self.kept = (parts, tuple(matrices))


def with_kernels(layer: DecoderLayer, full: Steps, sliding: Steps) -> DecoderLayer:
    """The same layer with those halves in one call that have kernels."""
    library = native()
    if library is None:
        return layer
    attention, mlp = _attention_half(layer), _mlp_half(layer)
    if attention is None and mlp is None:
        return layer
    return NativeLayer(
        **vars(layer),
        library=library,
        attention_half=attention,
        mlp_half=mlp,
        steps=sliding if layer.sliding else full,
    )


def _attention_half(layer: DecoderLayer) -> AttentionHalf | None:
    attention = layer.attention
    if not isinstance(attention, Attention):
        return None
    cache = attention.cache
    fits = cache.key_dim % LANES == 0 and attention.heads <= MOST_SHARING * cache.kv_heads
    qkv, output = _parts(attention.qkv), _parts(attention.output)
    if not fits or cache.dtype not in types.KV_KINDS or qkv is None or output is None:
        return None
    return AttentionHalf(layer.attention_norm, attention, qkv, output)


def _mlp_half(layer: DecoderLayer) -> MlpHalf | None:
    mlp = layer.mlp
    if not isinstance(mlp, GatedMLP):
        return None
    gate_up, down = _parts(mlp.gate_up), _parts(mlp.down)
    if gate_up is None or down is None:
        return None
    return MlpHalf(layer.mlp_norm, mlp, gate_up, down)


def _parts(linear: Linear) -> Parts | None:
    parts = linear.parts if isinstance(linear, SplitLinear) else (linear,)
    matrices = [part.matrix for part in parts if isinstance(part, NativeLinear)]
    return Parts(matrices) if len(matrices) == len(parts) else None


def _described(cache: KVCache, layer: int) -> types.Cache:
    (keys, *key_scales), (values, *value_scales) = cache.stored(layer)
    return types.Cache(
        types.KV_KINDS[cache.dtype],
        keys.data_ptr(),
        values.data_ptr(),
        key_scales[0].data_ptr() if key_scales else None,
        value_scales[0].data_ptr() if value_scales else None,
    )
