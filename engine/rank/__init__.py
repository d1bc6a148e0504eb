"""Rank process: `python -m engine.rank`, one ProcessSpec as a JSON line on standard input."""
