"""GGUF checkpoints: strict, bounded, without torch. Anything doubtful is a CheckpointError."""

from engine.checkpoint.checkpoint import Checkpoint, open_checkpoint, revision
from engine.checkpoint.header import TensorInfo
from engine.checkpoint.schema import SUPPORTED_ARCHITECTURES
from engine.checkpoint.tokenizer import TokenizerMetadata

__all__ = [
    "SUPPORTED_ARCHITECTURES",
    "Checkpoint",
    "TensorInfo",
    "TokenizerMetadata",
    "open_checkpoint",
    "revision",
]
