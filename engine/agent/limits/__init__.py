"""Quiet hours and power caps on this node: set, watched over, reported, and taken back."""
