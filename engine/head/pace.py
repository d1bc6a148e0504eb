"""How long a step of a given size takes, learnt from those that ran."""

from engine.head.deadlines import Deadlines

_WEIGHT = 0.2


class Pace:
    """Running means by size, in powers of two of tokens."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._seconds: dict[int, float] = {}

    def learn(self, tokens: int, seconds: float) -> None:
        size = tokens.bit_length()
        known = self._seconds.get(size)
        fresh = seconds if known is None else known + _WEIGHT * (seconds - known)
        self._seconds[size] = fresh

    def predict(self, tokens: int) -> float | None:
        """Seconds; None for a size never seen."""
        return self._seconds.get(tokens.bit_length())

    def limit(self, tokens: int) -> float:
        """Seconds after which the step counts as hung."""
        predicted = self.predict(tokens)
        if predicted is None:
            return self._deadlines.new_step
        return max(self._deadlines.step, self._deadlines.step_factor * predicted)
