"""Log-probabilities in OpenAI's and vLLM's shapes.

They are of the model's own distribution: before bias, penalties, temperature and any form.
"""

from collections.abc import Sequence
from typing import Any

from engine.head.answer import Token
from engine.protocol.steps import TokenLogprobs
from engine.text.detokenizer import Detokenizer, spelled
from engine.text.tokenizer import TextTokenizer

Json = dict[str, Any]

LEAST = -9999.0
"""Stands for a probability of nothing, which JSON cannot write."""


class LogprobShaper:
    def __init__(self, tokenizer: TextTokenizer, top: int | None, prompt_top: int | None) -> None:
        """How many of the likeliest tokens were asked for, of answers and of prompts."""
        self._tokenizer = tokenizer
        self._top = top
        self._prompt_top = prompt_top or 0

    def chat(self, tokens: Sequence[Token]) -> Json | None:
        """A chat choice's `logprobs`; None when nobody asked."""
        if self._top is None:
            return None
        content = [
            self._entry(report.token, report.logprob)
            | {"top_logprobs": [self._entry(*pair) for pair in report.top[: self._top]]}
            for report in _reports(tokens)
        ]
        return {"content": content, "refusal": None}

    def completion(
        self, tokens: Sequence[Token], shift: int = 0, prompt: "EchoedPrompt | None" = None
    ) -> Json | None:
        """A completion choice's `logprobs`; offsets begin at `shift`. With the prompt's before
        them where it is echoed."""
        if self._top is None:
            return None
        parts: Json = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
        if prompt is not None:
            first: list[TokenLogprobs | None] = [None, *prompt.reports]
            for known, report, offset in zip(prompt.ids, first, prompt.offsets, strict=False):
                self._add(parts, known, report, offset)
        for token in tokens:
            if token.logprobs is not None:
                self._add(parts, token.id, token.logprobs, token.start + shift)
        return parts

    def prompt(self, reports: Sequence[TokenLogprobs]) -> list[Json | None]:
        """vLLM's `prompt_logprobs`: for each token after the first, ids to what is known."""
        return [None, *(self._ranked(report) for report in reports)]

    def text(self, token: int) -> str:
        """A token's text; bytes that are no text by themselves are spelled out, as OpenAI does."""
        known = spelled(self._tokenizer, token)
        try:
            return known.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in known)

    def _add(self, parts: Json, token: int, report: TokenLogprobs | None, offset: int) -> None:
        parts["tokens"].append(self.text(token))
        parts["text_offset"].append(offset)
        parts["token_logprobs"].append(None if report is None else max(report.logprob, LEAST))
        parts["top_logprobs"].append(None if report is None else self._alternatives(report))

    def _alternatives(self, report: TokenLogprobs) -> Json:
        """The likeliest and the drawn one."""
        pairs = (*report.top[: self._top], (report.token, report.logprob))
        return {self.text(token): max(logprob, LEAST) for token, logprob in pairs}

    def _entry(self, token: int, logprob: float) -> Json:
        return {
            "token": self.text(token),
            "logprob": max(logprob, LEAST),
            "bytes": list(spelled(self._tokenizer, token)),
        }

    def _ranked(self, report: TokenLogprobs) -> Json:
        tops = enumerate(report.top[: self._prompt_top], 1)
        found = {str(token): (rank, token, logprob) for rank, (token, logprob) in tops}
        found[str(report.token)] = (report.rank, report.token, report.logprob)
        return {
            key: {
                "logprob": max(logprob, LEAST),
                "rank": rank,
                "decoded_token": self.text(token),
            }
            for key, (rank, token, logprob) in found.items()
        }


class EchoedPrompt:
    """A prompt that stands before its answer."""

    def __init__(
        self,
        tokenizer: TextTokenizer,
        ids: Sequence[int],
        reports: Sequence[TokenLogprobs],
        written: str | None,
    ) -> None:
        """`written`: the prompt as it was given, unless as ids."""
        self.ids = ids
        self.reports = reports
        self.offsets: list[int] = []
        self.text = ""
        detokenizer = Detokenizer(tokenizer)
        pieces: list[str] = []
        length = 0
        for token in ids:
            self.offsets.append(length)
            pieces.append(detokenizer.feed([token]))
            length += len(pieces[-1])
        self.text = "".join(pieces)
        if written is not None and self.text == f" {written}":
            # Some vocabularies put a space before everything.
            self.text = written
            self.offsets = [max(0, offset - 1) for offset in self.offsets]


def _reports(tokens: Sequence[Token]) -> list[TokenLogprobs]:
    return [token.logprobs for token in tokens if token.logprobs is not None]
