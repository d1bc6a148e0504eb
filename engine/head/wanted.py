"""What one API request asks of the engine, and what that means for the scheduler and the ranks."""

from collections.abc import Set

import msgspec

from engine.protocol.steps import Sampling


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """How one API request is to be answered."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: dict[int, float] = {}
    seed: int | None = None
    n: int = 1
    """Answers to each prompt; answer i draws with seed + i."""
    max_tokens: int | None = None
    """None: as many as still fit."""
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    grammar: str = ""
    """In llguidance's serialised form, already checked; empty for none."""
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    priority: int = 0
    salt: str = ""
    """Prompts share cached blocks only with requests of the same salt."""
    shown: frozenset[int] = frozenset()
    """Control tokens whose spelling is part of the answer's text."""

    def sampling(self, seed: int, end_ids: Set[int]) -> Sampling:
        """How one answer's tokens are drawn. The reports of prompt and answer list as many tokens
        as the longer of them wants."""
        reports = [n for n in (self.logprobs, self.prompt_logprobs) if n is not None]
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            seed=seed,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            logit_bias=self.logit_bias,
            stop_tokens=tuple(sorted(self.stop_tokens(end_ids))),
            min_tokens=self.min_tokens,
            grammar=self.grammar,
            logprobs=max(reports, default=None),
        )

    def stop_tokens(self, end_ids: Set[int]) -> frozenset[int]:
        """What ends an answer. A grammar leaves only an end token to draw once it is complete, so
        there the tokenizer's `end_ids` are never ignored."""
        own = frozenset(self.stop_token_ids)
        return own if self.ignore_eos and not self.grammar else own | end_ids
