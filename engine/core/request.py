"""One request and its life. All of it survives preemption and could be written to a journal."""

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from engine.protocol.steps import Sampling, TokenLogprobs

FinishReason = Literal["stop", "length", "abort", "error"]


@dataclass(slots=True, kw_only=True)
class Request:
    """What was asked and what has been answered so far. Times are seconds on the caller's clock."""

    id: str
    prompt: list[int]
    max_tokens: int
    """0 to compute the prompt alone: it ends with `length` and no token."""
    sampling: Sampling = field(default_factory=Sampling)
    stop_tokens: frozenset[int] = frozenset()
    """Token ids that end the answer; empty to ignore end-of-sequence."""
    min_tokens: int = 0
    """Stop tokens are ordinary tokens until this many were emitted."""
    namespace: bytes = b""
    """Root of its prefix hashes (`prefix.namespace`)."""
    share_prefix: bool = True
    """Whether cached blocks may be used; not where every position of the prompt is scored."""
    score_prompt: bool = False
    """Whether the probabilities of the prompt's own tokens are wanted."""
    priority: int = 0
    """Lower numbers go first."""
    arrived_at: float = 0.0

    emitted: list[int] = field(default_factory=list)
    cached_tokens: int | None = None
    """Prompt tokens found in the prefix cache at first admission; None before it."""
    preemptions: int = 0
    fruitless: int = 0
    """Epochs that ended while it was being computed, without a token of it between."""
    admitted_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float | None = None
    finish: FinishReason | None = None
    error: str = ""
    refused: bool = False
    """It failed for what was asked: its grammar or its bias leaves no token to draw."""
    prompt_logprobs: list[TokenLogprobs] = field(default_factory=list)
    """Of prompt tokens 1, 2, …: complete with the first token of the answer."""

    @property
    def history(self) -> list[int]:
        """Prompt and answer so far: the prompt of a recomputation."""
        return self.prompt + self.emitted

    def accept(self, token: int, now: float) -> FinishReason | None:
        """Record one sampled token; says whether it ends the answer."""
        emitted = self.emitted
        if not emitted:
            self.first_token_at = now
        emitted.append(token)
        self.last_token_at = now
        self.fruitless = 0
        if token in self.stop_tokens and len(emitted) > self.min_tokens:
            return "stop"
        return "length" if len(emitted) >= self.max_tokens else None


class Event(msgspec.Struct, frozen=True, gc=False):
    """What a step did to one request. A request's last event, and only that, has `finish`."""

    request: Request
    token: int | None = None
    finish: FinishReason | None = None
    logprobs: TokenLogprobs | None = None
