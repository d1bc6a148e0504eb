"""Checkpoints: GGUF files and Hugging Face folders, strict, bounded, without torch.

Anything doubtful is a CheckpointError.
"""

from engine.checkpoint.checkpoint import Checkpoint
from engine.checkpoint.gguf.architectures import SUPPORTED_ARCHITECTURES
from engine.checkpoint.opening import open_checkpoint, revision
from engine.checkpoint.stored import Piece, Stack, Stored, TensorInfo
from engine.checkpoint.tokenizer import TokenizerMetadata

__all__ = [
    "SUPPORTED_ARCHITECTURES",
    "Checkpoint",
    "Piece",
    "Stack",
    "Stored",
    "TensorInfo",
    "TokenizerMetadata",
    "open_checkpoint",
    "revision",
]
