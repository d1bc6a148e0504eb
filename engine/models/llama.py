"""Builds a Llama-family decoder from GGUF tensors."""

import torch
from torch import Tensor

from engine.checkpoint.tensors import EMBEDDING, FINAL_NORM, HEAD, layer_tensor
from engine.config import ParallelPlan
from engine.kernels import Linear, LinearFactory
from engine.layers import Attention, Embedding, GatedMLP, KVCache, OutputHead, RMSNorm, Rotary
from engine.loader import WeightSource
from engine.model_config import ModelConfig
from engine.models.decoder import Decoder, DecoderLayer
from engine.parallel import Mesh
from engine.shards import RankShare, Span, rank_shares


def build_llama(
    model: ModelConfig,
    plan: ParallelPlan,
    share: RankShare,
    source: WeightSource,
    linear: LinearFactory,
    mesh: Mesh,
    num_blocks: int,
) -> Decoder:
    """This rank's share, read from `source`. Every weight comes into being with its value."""
    return _Builder(model, plan, share, source, linear, mesh, num_blocks).build()


class _Builder:
    def __init__(
        self,
        model: ModelConfig,
        plan: ParallelPlan,
        share: RankShare,
        source: WeightSource,
        linear: LinearFactory,
        mesh: Mesh,
        num_blocks: int,
    ) -> None:
        self.model = model
        self.plan = plan
        self.share = share
        self.source = source
        self.linear = linear
        self.mesh = mesh
        self.nbytes = 0
        self.table: Tensor | None = None
        self.cache = KVCache(
            share.layers.size, num_blocks, share.kv_heads.size, model.head_dim, model.value_dim
        )

    def build(self) -> Decoder:
        embedding = self._embedding()
        layers = [
            self._layer(layer) for layer in range(self.share.layers.start, self.share.layers.stop)
        ]
        norm = self._norm(FINAL_NORM) if self.share.last_stage else None
        head = self._head() if self.share.last_stage else None
        return Decoder(
            layers=layers,
            rotary=Rotary(self.model.head_dim, self.model.rope.theta),
            cache=self.cache,
            mesh=self.mesh,
            hidden_size=self.model.hidden_size,
            weight_bytes=self.nbytes,
            embedding=embedding,
            norm=norm,
            head=head,
        )

    def _embedding(self) -> Embedding | None:
        if not self.share.first_stage:
            return None
        self.table = self.source.rows(EMBEDDING, self.share.vocab)
        self.nbytes += self.table.nbytes
        return Embedding(self.table, self.share.vocab, self.mesh.tp)

    def _head(self) -> OutputHead:
        """With tied embeddings the last stage reads its own copy, unless it is the first too."""
        table = self.table
        if table is None or not self.model.tie_embeddings:
            name = EMBEDDING if self.model.tie_embeddings else HEAD
            table = self.source.rows(name, self.share.vocab)
        linear = self._pack(table)
        stage_start = self.share.stage * self.plan.tp
        shares = rank_shares(self.model, self.plan)[stage_start : stage_start + self.plan.tp]
        return OutputHead(linear, [share.vocab for share in shares], self.mesh.tp)

    def _layer(self, layer: int) -> DecoderLayer:
        return DecoderLayer(
            attention_norm=self._norm(layer_tensor(layer, "attn_norm.weight")),
            attention=self._attention(layer),
            mlp_norm=self._norm(layer_tensor(layer, "ffn_norm.weight")),
            mlp=self._mlp(layer),
        )

    def _attention(self, layer: int) -> Attention:
        width = self.model.head_dim
        queries, keys = self.share.heads.times(width), self.share.kv_heads.times(width)
        parts = [
            unpermute(self._rows(layer, "attn_q", queries), width),
            unpermute(self._rows(layer, "attn_k", keys), width),
            self._rows(layer, "attn_v", keys),
        ]
        return Attention(
            qkv=self._pack(torch.cat(parts)),
            output=self._pack(self._columns(layer, "attn_output", queries)),
            cache=self.cache,
            layer=layer - self.share.layers.start,
            heads=self.share.heads.size,
            group=self.mesh.tp,
        )

    def _mlp(self, layer: int) -> GatedMLP:
        span = self.share.intermediate
        gate_up = [self._rows(layer, "ffn_gate", span), self._rows(layer, "ffn_up", span)]
        return GatedMLP(
            gate_up=self._pack(torch.cat(gate_up)),
            down=self._pack(self._columns(layer, "ffn_down", span)),
            group=self.mesh.tp,
        )

    def _norm(self, name: str) -> RMSNorm:
        weight = self.source.vector(name)
        self.nbytes += weight.nbytes
        return RMSNorm(weight, self.model.rms_norm_eps)

    def _rows(self, layer: int, part: str, span: Span) -> Tensor:
        return self.source.rows(layer_tensor(layer, f"{part}.weight"), span)

    def _columns(self, layer: int, part: str, span: Span) -> Tensor:
        return self.source.columns(layer_tensor(layer, f"{part}.weight"), span)

    def _pack(self, weight: Tensor) -> Linear:
        linear = self.linear(weight)
        if self.table is None or getattr(linear, "weight", None) is not self.table:
            self.nbytes += linear.nbytes
        return linear


def unpermute(weight: Tensor, head_dim: int) -> Tensor:
    """Rows of each head from GGUF's interleaved rotary order back to two halves.

    GGUF stores the pair (i, i + head_dim/2) as rows (2i, 2i + 1) for this architecture.
    """
    pairs = weight.view(-1, head_dim // 2, 2, weight.shape[1])
    return pairs.transpose(1, 2).reshape(weight.shape)
