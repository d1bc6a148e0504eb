"""What a step gave."""

from dataclasses import dataclass, field

from engine.protocol.steps import Result, Timings, TokenLogprobs
from engine.runner.readout import Draws, Scores
from engine.runner.sampler import Draw


@dataclass(frozen=True)
class Outcome:
    """All but the timings is empty on every rank but the output rank."""

    timings: Timings
    draws: list[Draw] = field(default_factory=list)
    """One a sampled row, in row order."""
    scores: dict[int, tuple[TokenLogprobs, ...]] = field(default_factory=dict)
    """By sequence: of its row's targets."""
    failed: dict[int, str] = field(default_factory=dict)
    """Sequences, and why; empty where it was that logits were not finite."""

    @classmethod
    def of(cls, timings: Timings, draws: Draws, scores: Scores) -> "Outcome":
        """From what was read out, by sequence. A missing score fails its sequence."""
        failed = {seq: draw.reason for seq, draw in draws.items() if draw.failed}
        whole: dict[int, tuple[TokenLogprobs, ...]] = {}
        for seq, found in scores.items():
            if None in found:
                failed[seq] = ""
            else:
                whole[seq] = tuple(score for score in found if score is not None)
        return cls(timings, list(draws.values()), whole, failed)

    def result(self, n: int) -> Result:
        """What the head is told of step `n`."""
        logprobs = tuple(draw.logprobs for draw in self.draws)
        return Result(
            n=n,
            tokens=[draw.token for draw in self.draws],
            failed=list(self.failed),
            timings=self.timings,
            logprobs=logprobs if any(logprobs) else (),
            scores=self.scores,
            reasons={seq: reason for seq, reason in self.failed.items() if reason},
        )
