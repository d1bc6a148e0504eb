"""Reads a rank's slices of a checkpoint with bounded memory, strict both ways."""

from engine.loader.memory import give_back
from engine.loader.source import Progress, WeightSource

__all__ = ["Progress", "WeightSource", "give_back"]
