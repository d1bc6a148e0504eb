"""`chat.completion` objects and their chunks."""

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.head.answer import Delta, Generation, Token
from engine.head.api.logprobs import LogprobShaper
from engine.head.api.origin import Origin
from engine.head.api.replies import Chunk, Envelope, Json, stop_reason
from engine.head.api.speech import Listener, Spoken
from engine.text.tools import CallArguments, CallStart

CHUNK = "chat.completion.chunk"


@dataclass
class _Call:
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)


@dataclass
class _Choice:
    """One answer, added up."""

    listener: Listener
    reasoning: list[str] = field(default_factory=list)
    content: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    finish: str | None = None
    stopped_by: str | None = None

    def add(self, spoken: Spoken, make_id: Callable[[int, int], str]) -> None:
        self.reasoning.append(spoken.reasoning)
        self.content.append(spoken.content)
        self.tokens += spoken.tokens
        self.finish = spoken.finish
        for piece in spoken.calls:
            if isinstance(piece, CallStart):
                self.calls.append(_Call(make_id(spoken.index, piece.index), piece.name))
            else:
                self.calls[piece.index].arguments.append(piece.text)

    def message(self) -> Json:
        content, reasoning = "".join(self.content), "".join(self.reasoning)
        message: Json = {
            "role": "assistant",
            "content": content or (None if self.calls else ""),
            "refusal": None,
        }
        if reasoning:
            message |= _thoughts(reasoning)
        if self.calls:
            message["tool_calls"] = [
                _function(call.id, call.name, "".join(call.arguments)) for call in self.calls
            ]
        return message


class ChatReply:
    def __init__(
        self,
        model: str,
        generation: Generation,
        logprobs: LogprobShaper,
        listen: Callable[[int], Listener],
        call_id: Callable[[bytes], str],
        origin: Origin,
        *,
        prompt_logprobs: bool,
    ) -> None:
        self._envelope = Envelope("chatcmpl", model, generation, origin)
        self._origin = origin
        self._generation = generation
        self._logprobs = logprobs
        self._call_id = call_id
        self._prompt_logprobs = prompt_logprobs
        self._choices = [_Choice(listen(index)) for index in range(len(generation.requests))]

    def usage(self) -> Json:
        return self._envelope.usage()

    def opening(self) -> list[Json]:
        """Who speaks."""
        delta = {"role": "assistant", "content": ""}
        base: Json = {"delta": delta, "logprobs": None, "finish_reason": None}
        indices = range(len(self._choices))
        return [self._envelope.around(CHUNK, [{"index": index, **base}]) for index in indices]

    def chunk(self, delta: Delta) -> Chunk:
        self._envelope.count(delta)
        spoken = self._choices[delta.index].listener.hear(delta)
        choice: Json = {
            "index": delta.index,
            "delta": self._delta(spoken),
            "logprobs": self._logprobs.chat(spoken.tokens) if spoken.tokens else None,
            "finish_reason": spoken.finish,
            **stop_reason(delta.stopped_by),
        }
        return Chunk(self._envelope.around(CHUNK, [choice]), len(spoken.tokens))

    def closing(self) -> Json:
        return self._envelope.around(CHUNK, []) | {"usage": self.usage()}

    def add(self, delta: Delta) -> None:
        self._envelope.count(delta)
        choice = self._choices[delta.index]
        choice.add(choice.listener.hear(delta), self._id_of)
        choice.stopped_by = delta.stopped_by

    def whole(self) -> Json:
        choices: list[Json] = [
            {
                "index": index,
                "message": choice.message(),
                "logprobs": self._logprobs.chat(choice.tokens),
                "finish_reason": choice.finish,
                **stop_reason(choice.stopped_by),
            }
            for index, choice in enumerate(self._choices)
        ]
        body = self._envelope.around("chat.completion", choices) | {"usage": self.usage()}
        if self._prompt_logprobs:
            reports = self._generation.requests[0].prompt_logprobs
            body["prompt_logprobs"] = self._logprobs.prompt(reports)
        return body

    def _delta(self, spoken: Spoken) -> Json:
        delta: Json = _thoughts(spoken.reasoning) if spoken.reasoning else {}
        if spoken.calls:
            delta["tool_calls"] = [self._piece(spoken.index, piece) for piece in spoken.calls]
        if spoken.content or not (delta or spoken.finish):
            delta["content"] = spoken.content
        return delta

    def _piece(self, answer: int, piece: CallStart | CallArguments) -> Json:
        if isinstance(piece, CallStart):
            call_id = self._id_of(answer, piece.index)
            return {"index": piece.index, **_function(call_id, piece.name, "")}
        return {"index": piece.index, "function": {"arguments": piece.text}}

    def _id_of(self, answer: int, call: int) -> str:
        return self._call_id(f"{self._origin.id} {answer} {call}".encode())


def _thoughts(text: str) -> Json:
    """Under both names that clients look for."""
    return {"reasoning_content": text, "reasoning": text}


def _function(call_id: str, name: str, arguments: str) -> Json:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}
