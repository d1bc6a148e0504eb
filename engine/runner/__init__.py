"""Step execution on one rank."""

from engine.runner.outcome import Outcome
from engine.runner.runner import Runner

__all__ = ["Outcome", "Runner"]
