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
        self._own = most
        self._held: int | None = None
        self._most = most
        self._target = target
        self._seconds: list[float] = []
        self._widest = 0

    @property
    def rows(self) -> int:
        """Most answers that advance in the next step."""
        return self._own if self._held is None else min(self._own, self._held)

    @property
    def held(self) -> int | None:
        return self._held

    def hold(self, rows: int | None) -> None:
        """Never above `rows` from the next step on; None lifts it, and the cap is what it was."""
        self._held = None if rows is None else max(1, rows)

    def aim(self, target: float | None) -> None:
        """Another target from the next step on; None fills the batch again."""
        self._target = target
        self._seconds.clear()
        if target is None:
            self._own = self._most

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
            self._own = max(1, int(min(self._own, self._widest) * DECREASE))
        elif self._widest >= self._own:  # Held lower, it was not tried and does not grow.
            self._own = min(self._most, self._own + 1)
