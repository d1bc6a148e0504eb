"""`text_completion` objects, whole and in chunks."""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from engine.core.request import FinishReason
from engine.head.answer import Delta, Generation, Token
from engine.head.api.logprobs import EchoedPrompt, LogprobShaper
from engine.head.api.origin import Origin
from engine.head.api.replies import Chunk, Envelope, Json, stop_reason

KIND = "text_completion"
Echo = Callable[[int], EchoedPrompt]
"""The prompt of a choice, once it has been read."""


@dataclass
class _Choice:
    echoed: EchoedPrompt | None = None
    begun: bool = False
    text: list[str] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    finish: str | None = None
    stopped_by: str | None = None

    @property
    def shift(self) -> int:
        """Characters before the answer."""
        return 0 if self.echoed is None else len(self.echoed.text)


class CompletionReply:
    def __init__(
        self,
        model: str,
        generation: Generation,
        logprobs: LogprobShaper,
        echo: Echo | None,
        origin: Origin,
        *,
        prompt_logprobs: bool,
        silent: bool,
    ) -> None:
        """`silent`: the echo alone is told."""
        self._envelope = Envelope("cmpl", model, generation, origin)
        self._generation = generation
        self._logprobs = logprobs
        self._echo = echo
        self._prompt_logprobs = prompt_logprobs
        self._silent = silent
        self._choices = [_Choice() for _ in generation.requests]

    def usage(self) -> Json:
        usage = self._envelope.usage()
        if self._silent:
            usage |= {"completion_tokens": 0, "total_tokens": usage["prompt_tokens"]}
        return usage

    def opening(self) -> list[Json]:
        return []

    def chunk(self, delta: Delta) -> Chunk:
        self._envelope.count(delta)
        delta = self._told(delta)
        choice = self._choices[delta.index]
        echoed = self._begin(choice, delta)
        logprobs = None
        if delta.tokens or echoed:
            logprobs = self._logprobs.completion(delta.tokens, choice.shift, echoed)
        text = delta.text if echoed is None else echoed.text + delta.text
        body: Json = {
            "index": delta.index,
            "text": text,
            "logprobs": logprobs,
            "finish_reason": delta.finish,
            **stop_reason(delta.stopped_by),
        }
        return Chunk(self._envelope.around(KIND, [body]), len(delta.tokens))

    def closing(self) -> Json:
        return self._envelope.around(KIND, []) | {"usage": self.usage()}

    def add(self, delta: Delta) -> None:
        self._envelope.count(delta)
        delta = self._told(delta)
        choice = self._choices[delta.index]
        if (echoed := self._begin(choice, delta)) is not None:
            choice.text.append(echoed.text)
        choice.text.append(delta.text)
        choice.tokens += delta.tokens
        choice.finish = delta.finish
        choice.stopped_by = delta.stopped_by

    def whole(self) -> Json:
        choices: list[Json] = []
        for index, choice in enumerate(self._choices):
            body: Json = {
                "index": index,
                "text": "".join(choice.text),
                "logprobs": self._logprobs.completion(choice.tokens, choice.shift, choice.echoed),
                "finish_reason": choice.finish,
                **stop_reason(choice.stopped_by),
            }
            if self._prompt_logprobs:
                reports = self._generation.requests[index].prompt_logprobs
                body["prompt_logprobs"] = self._logprobs.prompt(reports)
            choices.append(body)
        return self._envelope.around(KIND, choices) | {"usage": self.usage()}

    def _told(self, delta: Delta) -> Delta:
        if not self._silent:
            return delta
        finish: FinishReason | None = "length" if delta.finish else None
        return msgspec.structs.replace(delta, text="", tokens=(), finish=finish, stopped_by=None)

    def _begin(self, choice: _Choice, delta: Delta) -> EchoedPrompt | None:
        """The prompt, before the first of its answer."""
        if choice.begun or self._echo is None:
            return None
        choice.begun = True
        choice.echoed = self._echo(delta.index)
        return choice.echoed
