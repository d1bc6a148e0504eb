"""Shapes of real models, for tests that need no weights."""

from engine.model_config import ModelConfig, Rope

SMOLLM2 = ModelConfig(
    architecture="llama",
    hidden_size=576,
    intermediate_size=1536,
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    vocab_size=49152,
    context_length=8192,
    rope=Rope(theta=100_000.0, dimensions=64),
    rms_norm_eps=1e-5,
    tie_embeddings=True,
)
"""The bundled model: 3 KV heads, so two ranks hold 2 + 1."""
