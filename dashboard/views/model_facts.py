"""What a model is made of, in words: the facts beside its name on its page."""

from django.utils.translation import gettext as _

from engine.config import ParallelPlan
from engine.model_config import (
    DivisorScaling,
    DynamicScaling,
    Experts,
    LatentAttention,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    ModelConfig,
    Rope,
    YarnScaling,
)
from engine.shards import kv_bytes_per_token, rank_share

Fact = tuple[str, str]


def model_facts(shape: ModelConfig) -> list[Fact]:
    """Label and text of each part that this model has; parts it lacks are left out."""
    return [
        (_("Architecture"), shape.architecture),
        (_("Layers"), str(shape.num_layers)),
        (_("Hidden size"), str(shape.hidden_size)),
        *_attention(shape),
        (_("Positions"), _rope(shape.rope)),
        *_feed_forward(shape),
        (_("Vocabulary"), f"{shape.vocab_size:,}"),
        (_("Embeddings"), _embeddings(shape)),
        (_("KV cache"), _cache(shape)),
    ]


def _attention(shape: ModelConfig) -> list[Fact]:
    heads = _("%(heads)s of size %(size)s") % {"heads": shape.num_heads, "size": shape.head_dim}
    facts = [(_("Attention heads"), heads)]
    if shape.latent is not None:
        facts.append((_("Latent attention"), _latent(shape.latent)))
    else:
        facts.append((_("KV heads"), _kv_heads(shape.num_kv_heads)))
    if shape.sliding_window and shape.sliding_layers:
        facts.append((_("Sliding window"), _window(shape, shape.sliding_window)))
    return facts


def _kv_heads(heads: int) -> str:
    if heads == 1:
        return _("1, so tensor parallel has to be 1")
    return _("%(heads)s, so at most %(heads)s ranks share a layer") % {"heads": heads}


def _latent(latent: LatentAttention) -> str:
    return _("one latent of %(width)s numbers a token, shared by every head") % {
        "width": latent.cache_width
    }


def _window(shape: ModelConfig, window: int) -> str:
    return _("%(window)s tokens, in %(count)s of %(layers)s layers") % {
        "window": window,
        "count": len(shape.sliding_layers),
        "layers": shape.num_layers,
    }


def _rope(rope: Rope) -> str:
    base = _("rotary, base %(base)s") % {"base": f"{rope.theta:,.0f}"}
    scaling = _scaling(rope)
    return _("%(base)s, %(scaling)s") % {"base": base, "scaling": scaling} if scaling else base


def _scaling(rope: Rope) -> str:
    match rope.scaling:
        case LinearScaling(factor=factor):
            return _("positions divided by %(factor)s") % {"factor": f"{factor:g}"}
        case DynamicScaling():
            return _("dynamic NTK scaling")
        case YarnScaling(factor=factor):
            return _("YaRN scaling by %(factor)s") % {"factor": f"{factor:g}"}
        case Llama3Scaling() | DivisorScaling():
            return _("Llama 3 scaling")
        case LongRopeScaling():
            return _("LongRoPE scaling")
    return ""


def _feed_forward(shape: ModelConfig) -> list[Fact]:
    experts = shape.experts
    if experts is None:
        return [(_("MLP size"), str(shape.intermediate_size))]
    facts = [(_("Experts"), _experts(experts))]
    if experts.shared_size:
        facts.append((_("Shared expert"), str(experts.shared_size)))
    if experts.dense_layers:
        dense = _("%(size)s, in %(count)s layers without experts")
        parts = {"size": shape.intermediate_size, "count": len(experts.dense_layers)}
        facts.append((_("MLP size"), dense % parts))
    return facts


def _experts(experts: Experts) -> str:
    return _("%(used)s of %(count)s for each token, of size %(size)s") % {
        "used": experts.per_token,
        "count": experts.count,
        "size": experts.intermediate_size,
    }


def _embeddings(shape: ModelConfig) -> str:
    if shape.tie_embeddings:
        return _("tied: input and output share one table")
    return _("separate for input and output")


def _cache(shape: ModelConfig) -> str:
    whole = rank_share(shape, ParallelPlan(), 0)
    kib = kv_bytes_per_token(shape, whole, element_bytes=4) / 1024
    return _("%(size)s KiB a token in fp32") % {"size": f"{kib:,.1f}"}
