"""Stored readings."""
