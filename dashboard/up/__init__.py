"""`manage.py up`: every process of Tandem on one machine, started, watched and stopped together."""

from dashboard.up.main import main

__all__ = ["main"]
