"""Builds a decoder from the parts its configuration names. No architecture is known here."""

from engine.checkpoint.tensors import EMBEDDING, FINAL_NORM, HEAD, layer_tensor
from engine.config import EngineConfig
from engine.layers import Embedding, OutputHead, Reach, RMSNorm, Rotary
from engine.model_config import ModelConfig
from engine.models.attention import build_attention
from engine.models.blueprint import Blueprint
from engine.models.decoder import AttentionPart, Decoder, DecoderLayer, FeedForward
from engine.models.experts import build_experts
from engine.models.feed_forward import build_mlp
from engine.models.latent import build_latent_attention
from engine.models.whole import Steps, with_kernels
from engine.shards import rank_shares


def build_decoder(blueprint: Blueprint, config: EngineConfig) -> Decoder:
    """One rank's share of the model."""
    model, share = blueprint.model, blueprint.share
    embedding = _embedding(blueprint)
    full, sliding = Steps(), Steps()
    layers = [
        with_kernels(_layer(blueprint, layer), full, sliding)
        for layer in range(share.layers.start, share.layers.stop)
    ]
    last = share.last_stage
    norm = blueprint.weights.norm(FINAL_NORM, model.rms_norm_eps) if last else None
    head = _head(blueprint, config, embedding) if last else None
    limit = config.max_model_len or model.context_length
    device = blueprint.cache.device
    rotary = Rotary(model.rope, limit, device)
    return Decoder(
        layers=layers,
        first_layer=share.layers.start,
        rotary=rotary,
        local_rotary=Rotary(model.local_rope, limit, device) if model.local_rope else rotary,
        cache=blueprint.cache,
        reach=_reach(blueprint),
        mesh=blueprint.mesh,
        hidden_size=model.hidden_size,
        weight_bytes=blueprint.weights.nbytes,
        embedding=embedding,
        norm=norm,
        head=head,
    )


def _embedding(blueprint: Blueprint) -> Embedding | None:
    share = blueprint.share
    if not share.first_stage:
        return None
    table = blueprint.weights.table(EMBEDDING, share.vocab)
    return Embedding(table, share.vocab, blueprint.mesh.tp, blueprint.model.embedding_scale)


def _head(blueprint: Blueprint, config: EngineConfig, embedding: Embedding | None) -> OutputHead:
    """With tied embeddings the last stage reads its own copy, unless it is the first too."""
    model, share, weights = blueprint.model, blueprint.share, blueprint.weights
    if model.tie_embeddings and embedding is not None:
        linear = weights.pack_table(embedding.table)
    else:
        name = EMBEDDING if model.tie_embeddings else HEAD
        linear = weights.pack_matrix(name, share.vocab)
    first = share.stage * config.plan.width
    shares = rank_shares(model, config.plan)[first : first + config.plan.width]
    spans = [share.vocab for share in shares]
    return OutputHead(linear, spans, blueprint.mesh.tp, model.final_softcap)


def _layer(blueprint: Blueprint, layer: int) -> DecoderLayer:
    return DecoderLayer(
        attention_norm=_norm(blueprint, layer, "attn_norm"),
        attention=_attention(blueprint, layer),
        post_attention_norm=_post_norm(blueprint, layer, "post_attention_norm"),
        mlp_norm=_norm(blueprint, layer, "ffn_norm"),
        mlp=_feed_forward(blueprint, layer),
        post_mlp_norm=_post_norm(blueprint, layer, "post_ffw_norm"),
        sliding=blueprint.model.is_sliding(layer),
    )


def _attention(blueprint: Blueprint, layer: int) -> AttentionPart:
    build = build_attention if blueprint.model.latent is None else build_latent_attention
    return build(blueprint, layer)


def _feed_forward(blueprint: Blueprint, layer: int) -> FeedForward:
    build = build_experts if blueprint.model.has_experts(layer) else build_mlp
    return build(blueprint, layer)


def _norm(blueprint: Blueprint, layer: int, part: str) -> RMSNorm:
    name = layer_tensor(layer, f"{part}.weight")
    return blueprint.weights.norm(name, blueprint.model.rms_norm_eps)


def _post_norm(blueprint: Blueprint, layer: int, part: str) -> RMSNorm | None:
    return _norm(blueprint, layer, part) if blueprint.model.post_norms else None


def _reach(blueprint: Blueprint) -> Reach:
    model: ModelConfig = blueprint.model
    share = blueprint.share
    sliding = {model.is_sliding(layer) for layer in range(share.layers.start, share.layers.stop)}
    return Reach(
        group_size=share.heads.size // share.kv_heads.size,
        padding_block=blueprint.cache.padding_block,
        window=model.sliding_window if True in sliding else None,
        full=False in sliding,
        device=blueprint.cache.device,
    )
