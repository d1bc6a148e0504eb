"""Building blocks of a decoder, each computing one rank's share."""

from engine.layers.attend import Attend
from engine.layers.attention import Attention
from engine.layers.cache import KVCache
from engine.layers.inputs import AttentionGroup, Reach, RowTables, StepInputs
from engine.layers.mlp import GatedMLP
from engine.layers.norm import RMSNorm
from engine.layers.rotary import Rotary
from engine.layers.vocabulary import Embedding, OutputHead

__all__ = [
    "Attend",
    "Attention",
    "AttentionGroup",
    "Embedding",
    "GatedMLP",
    "KVCache",
    "OutputHead",
    "RMSNorm",
    "Reach",
    "Rotary",
    "RowTables",
    "StepInputs",
]
