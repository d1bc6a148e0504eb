"""How many answers may advance in one step, so that each gets its tokens in time. Pure."""

from statistics import median

WINDOW = 8
"""Steps between two decisions; their median is judged, so that one hiccup decides nothing."""
DECREASE = 0.75


class BatchCap:
    """Additive increase, multiplicative decrease (Chiu and Jain 1989) on the time of a step.

    Only steps without prompts are judged: the length of the others is the token budget's doing.
    """

    def __init__(self, most: int, target: float | None) -> None:
        """Between 1 and `most` rows; `target` is in seconds a step, None to stay at `most`."""
        self.rows = most
        self._most = most
        self._target = target
        self._seconds: list[float] = []
        self._widest = 0

    @property
    def moves(self) -> bool:
        return self._target is not None

    def observe(self, rows: int, seconds: float) -> None:
        """A step of `rows` decode rows took so long, from being sent to its result."""
        if self._target is None:
            return
        self._seconds.append(seconds)
        self._widest = max(self._widest, rows)
        if len(self._seconds) < WINDOW:
            return
        self._decide(median(self._seconds) > self._target)
        self._seconds.clear()
        self._widest = 0

    def _decide(self, late: bool) -> None:
        if late:
            # Fewer than now advance: a cap that nothing reaches would have to fall for long.
            self.rows = max(1, int(min(self.rows, self._widest) * DECREASE))
        elif self._widest >= self.rows:
            self.rows = min(self._most, self.rows + 1)
