"""Stop strings, across any boundary between tokens."""

from collections.abc import Sequence


class StopMatcher:
    """Passes text on, except what could still become a stop string.

    The match that ends first wins, and of those the longest: what a reader of single characters
    would find, so the answer does not depend on how the text was cut into tokens.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(filter(None, stops))
        self._held = ""
        self.matched: str | None = None

    def feed(self, text: str) -> str:
        """Text that is safe to show. After a match (`matched`) nothing more comes."""
        if self.matched is not None:
            return ""
        if not self._stops:
            return text
        seen = self._held + text
        found = [(seen.find(stop), stop) for stop in self._stops if stop in seen]
        if found:
            start, self.matched = min(found, key=lambda hit: (hit[0] + len(hit[1]), hit[0]))
            self._held = ""
            return seen[:start]
        keep = max(overlap(seen, stop) for stop in self._stops)
        self._held = seen[len(seen) - keep :]
        return seen[: len(seen) - keep]

    def flush(self) -> str:
        """What was held when the answer ended otherwise."""
        held, self._held = self._held, ""
        return held


def overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
