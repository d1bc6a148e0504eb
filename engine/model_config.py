"""Shape of a decoder, as its checkpoint declares it. Small parts; no torch, no I/O.

Every architecture is one combination of these parts: a reader of checkpoints fills them in, and the
one decoder in `engine/models` is built from them.
"""

from typing import Literal

import msgspec

Activation = Literal["silu", "gelu_tanh"]


class LinearScaling(msgspec.Struct, frozen=True, tag="linear"):
    """Positions divided by `factor` (kaiokendev, 2023)."""

    factor: float


class DynamicScaling(msgspec.Struct, frozen=True, tag="dynamic"):
    """NTK-aware base that grows with the context limit beyond `original_context`."""

    factor: float
    original_context: int


class YarnScaling(msgspec.Struct, frozen=True, tag="yarn"):
    """YaRN (arXiv 2309.00071); `attention_factor` multiplies cosine and sine."""

    factor: float
    original_context: int
    attention_factor: float
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True


class Llama3Scaling(msgspec.Struct, frozen=True, tag="llama3"):
    """Llama 3.1: low frequencies divided by `factor`, high ones kept, a ramp between."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context: int


class LongRopeScaling(msgspec.Struct, frozen=True, tag="longrope"):
    """LongRoPE (arXiv 2402.13753): one divisor a frequency, short or long by the context limit."""

    short_factors: tuple[float, ...]
    long_factors: tuple[float, ...]
    original_context: int
    attention_factor: float


class DivisorScaling(msgspec.Struct, frozen=True, tag="divisors"):
    """One divisor a frequency, as GGUF stores Llama 3.1's (`rope_freqs.weight`)."""

    divisors: tuple[float, ...]


RopeScaling = (
    LinearScaling | DynamicScaling | YarnScaling | Llama3Scaling | LongRopeScaling | DivisorScaling
)


class Rope(msgspec.Struct, frozen=True, kw_only=True):
    """Rotary position embedding over the first `dimensions` of a head; the rest pass unrotated.

    Dynamic and LongRoPE scaling look at a length. The engine takes the deployment's context limit
    for it, so that a key in the cache never has to change.
    """

    theta: float
    dimensions: int
    scaling: RopeScaling | None = None


class LatentAttention(msgspec.Struct, frozen=True, kw_only=True):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434). `head_dim` of the model is
    nope_dim + rope_dim; a token's cache entry is kv_rank + rope_dim wide, shared by every head."""

    q_rank: int | None
    """None: queries are projected directly."""
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int

    @property
    def cache_width(self) -> int:
        return self.kv_rank + self.rope_dim


class Experts(msgspec.Struct, frozen=True, kw_only=True):
    """A mixture of experts in place of the MLP, in every layer but `dense_layers`."""

    count: int
    per_token: int
    intermediate_size: int
    scoring: Literal["softmax", "sigmoid"] = "softmax"
    """Over all experts, before any is chosen."""
    renormalize: bool = True
    """Whether the chosen experts' weights are made to sum to 1; independent of `scale`."""
    scale: float = 1.0
    groups: int = 1
    """Experts are chosen inside the best `top_groups` of this many equal groups."""
    top_groups: int = 1
    group_score: Literal["max", "top2"] = "max"
    correction_bias: bool = False
    """A bias an expert that counts when choosing, never in the weights."""
    shared_size: int = 0
    """Columns of an MLP that every token passes through besides; 0 for none."""
    dense_layers: tuple[int, ...] = ()


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One decoder."""

    architecture: str
    """For people and messages, e.g. `llama`, `gemma3`; nothing is decided by it after reading."""
    hidden_size: int
    intermediate_size: int
    """Columns of a dense MLP."""
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    context_length: int
    rope: Rope
    rms_norm_eps: float
    tie_embeddings: bool
    activation: Activation = "silu"
    qk_norm: bool = False
    """RMS norm of every query and key head before rotation."""
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    post_norms: bool = False
    """Also a norm behind attention and MLP, before each is added (Gemma 2 and 3)."""
    embedding_scale: float = 1.0
    attention_scale: float | None = None
    """Of query times key; None means head_dim ** -0.5."""
    attention_softcap: float | None = None
    """Scores become cap * tanh(score / cap)."""
    final_softcap: float | None = None
    sliding_window: int | None = None
    """A query in a sliding layer sees itself and the sliding_window - 1 tokens before it."""
    sliding_layers: tuple[int, ...] = ()
    local_rope: Rope | None = None
    """Of the sliding layers, where it differs from `rope`."""
    latent: LatentAttention | None = None
    experts: Experts | None = None

    @property
    def kv_group_size(self) -> int:
        """Query heads that share one KV head."""
        return self.num_heads // self.num_kv_heads

    @property
    def score_scale(self) -> float:
        return self.head_dim**-0.5 if self.attention_scale is None else self.attention_scale

    @property
    def value_dim(self) -> int:
        return self.latent.value_dim if self.latent else self.head_dim

    def is_sliding(self, layer: int) -> bool:
        return layer in self.sliding_layers

    def has_experts(self, layer: int) -> bool:
        return self.experts is not None and layer not in self.experts.dense_layers
