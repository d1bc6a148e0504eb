"""The OpenAI-compatible door: who may ask, which replica answers, and the way there and back."""
