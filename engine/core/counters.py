"""What a scheduler has done so far."""

from dataclasses import dataclass

from engine.core.request import FinishReason


@dataclass(slots=True)
class Counters:
    """Totals since the scheduler was made."""

    steps: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens found in the prefix cache."""
    generated_tokens: int = 0
    preemptions: int = 0
    stopped: int = 0
    """Ended by a stop token or stop string."""
    cut: int = 0
    """Ended by their token limit."""
    aborted: int = 0
    failed: int = 0

    @property
    def finished(self) -> int:
        return self.stopped + self.cut

    @property
    def endings(self) -> dict[str, int]:
        return {
            "stop": self.stopped,
            "length": self.cut,
            "abort": self.aborted,
            "error": self.failed,
        }

    def count_end(self, finish: FinishReason) -> None:
        match finish:
            case "stop":
                self.stopped += 1
            case "length":
                self.cut += 1
            case "abort":
                self.aborted += 1
            case "error":
                self.failed += 1
