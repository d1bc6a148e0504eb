"""Questions and their undisturbed answers, and what an answer lost or repeated against them."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from tests.chaos.asking import Answer, Asker
from tests.chaos.panel import ROUTE
from tests.engine.boxes import ROOT

TEXT = ROOT / "tests" / "data" / "public_domain.txt"
WORDS = (16, 42)
PROMPT_TOKENS = range(20, 61)
LEAST_MARGIN = 2e-3
"""In log probability. Below it two orders of the same sum could draw different tokens."""


@dataclass(frozen=True)
class Reference:
    """One question, and what was answered while nothing was wrong."""

    prompt: str
    tokens: int
    chunks: tuple[str, ...]

    @property
    def body(self) -> dict[str, Any]:
        return question(self.prompt, self.tokens)

    def faults_of(self, answer: Answer) -> tuple[int, int]:
        """Tokens lost, and tokens repeated or never said. A token whose text waits for the next
        one's counts with that."""
        if answer.text == "".join(self.chunks):
            told = answer.usage.get("completion_tokens", self.tokens)
            return max(0, self.tokens - told), max(0, told - self.tokens)
        lost = repeated = 0
        matcher = SequenceMatcher(None, self.chunks, answer.chunks, autojunk=False)
        for kind, begin, end, first, last in matcher.get_opcodes():
            if kind != "equal":
                lost, repeated = lost + end - begin, repeated + last - first
        return (lost, repeated) if lost or repeated else (1, 1)


def question(prompt: str | list[int], tokens: int, **more: Any) -> dict[str, Any]:
    """As a request's body: greedy, streamed, exactly `tokens` long."""
    return {
        "model": ROUTE,
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        **more,
    }


def undisturbed(
    asker: Asker, count: int, tokens: Sequence[int], rng: random.Random, at_once: int = 8
) -> list[Reference]:
    """Raises RuntimeError when the deployment does not answer as asked."""
    words = TEXT.read_text().split()
    found: list[Reference] = []
    with ThreadPoolExecutor(at_once) as threads:
        while len(found) < count:
            asked = [(prompt(words, rng), rng.choice(tokens)) for _ in range(at_once)]
            answers = threads.map(lambda it: asker.ask(question(*it, logprobs=2)), asked)
            for it, answer in zip(asked, answers, strict=True):
                if (made := _reference(*it, answer)) is not None:
                    found.append(made)
    return found[:count]


def prompt(words: Sequence[str], rng: random.Random) -> str:
    length = rng.randint(*WORDS)
    start = rng.randrange(len(words) - length)
    return " ".join(words[start : start + length])


def _reference(asked: str, tokens: int, answer: Answer) -> Reference | None:
    """None for a prompt of another length, or an answer that hangs on the last bits."""
    if answer.failure or answer.usage.get("completion_tokens") != tokens:
        raise RuntimeError(f"The undisturbed answer: {answer.failure or answer.usage}")
    if answer.usage["prompt_tokens"] not in PROMPT_TOKENS or min(answer.margins) < LEAST_MARGIN:
        return None
    return Reference(asked, tokens, tuple(answer.chunks))
