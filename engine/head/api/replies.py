"""OpenAI's response objects, whole and in chunks."""

import time
from secrets import token_hex
from typing import Any, Literal

import msgspec

from engine.errors import EngineError, RequestError
from engine.head.answer import Delta, Generation

Kind = Literal["chat", "completion"]
Json = dict[str, Any]

DONE = b"data: [DONE]\n\n"


def event(body: Json) -> bytes:
    """One server-sent event."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


def error_body(error: EngineError) -> tuple[int, Json]:
    """Status and body of a refusal or failure."""
    status, param, code = 500, None, "engine_error"
    if isinstance(error, RequestError):
        status, param, code = error.status, error.param, error.code or "invalid_value"
    kind = "invalid_request_error" if status < 500 else "server_error"
    detail = {"message": str(error), "type": kind, "param": param, "code": code}
    return status, {"error": detail}


class Reply:
    """Shapes one API request's answers."""

    def __init__(self, kind: Kind, model: str, generation: Generation) -> None:
        self._kind = kind
        self._generation = generation
        prefix = "chatcmpl" if kind == "chat" else "cmpl"
        self._base: Json = {
            "id": f"{prefix}-{token_hex(12)}",
            "object": "",
            "created": int(time.time()),
            "model": model,
        }

    def usage(self) -> Json:
        """Tokens so far; complete once every answer has finished."""
        prompt, completion = self._generation.prompt_tokens, self._generation.completion_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": self._generation.cached_tokens},
        }

    def whole(self, texts: list[str], finishes: list[str | None]) -> Json:
        choices = [
            self._choice(index, text, finish)
            for index, (text, finish) in enumerate(zip(texts, finishes, strict=True))
        ]
        name = "chat.completion" if self._kind == "chat" else "text_completion"
        return self._base | {"object": name, "choices": choices, "usage": self.usage()}

    def opening(self) -> Json:
        """The first chunk of a chat: who speaks."""
        delta = {"role": "assistant", "content": ""}
        return self._chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])

    def chunk(self, delta: Delta) -> Json:
        choice: Json = {"index": delta.index, "logprobs": None, "finish_reason": delta.finish}
        if self._kind == "chat":
            choice["delta"] = {"content": delta.text} if delta.text or not delta.finish else {}
        else:
            choice["text"] = delta.text
        return self._chunk([choice])

    def closing(self) -> Json:
        """The usage chunk, without choices."""
        return self._chunk([]) | {"usage": self.usage()}

    def _chunk(self, choices: list[Json]) -> Json:
        name = "chat.completion.chunk" if self._kind == "chat" else "text_completion"
        return self._base | {"object": name, "choices": choices}

    def _choice(self, index: int, text: str, finish: str | None) -> Json:
        choice: Json = {"index": index, "logprobs": None, "finish_reason": finish}
        if self._kind == "chat":
            choice["message"] = {"role": "assistant", "content": text, "refusal": None}
        else:
            choice["text"] = text
        return choice
