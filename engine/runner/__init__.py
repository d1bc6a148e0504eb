"""Step execution on one rank."""

from engine.runner.runner import Outcome, Runner

__all__ = ["Outcome", "Runner"]
