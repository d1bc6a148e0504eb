"""Sums of counters of which one may start over, or go away, by itself. Pure."""

from collections.abc import Mapping


class Growing:
    """A sum that never falls: whoever reads it would believe that all of its parts had started
    over, and count once more what the others have counted in years."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._kept = 0.0
        """What parts had counted that have started over or gone since."""

    def total(self, parts: Mapping[str, float]) -> float:
        for name, before in self._last.items():
            now = parts.get(name)
            if now is None or now < before:
                self._kept += before
        self._last = dict(parts)
        return sum(parts.values()) + self._kept
