"""Reads a rank's slices of a checkpoint with bounded memory, strict both ways."""

from engine.loader.source import Progress, WeightSource

__all__ = ["Progress", "WeightSource"]
