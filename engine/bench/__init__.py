"""Measures the engine: `python -m engine.bench`."""
