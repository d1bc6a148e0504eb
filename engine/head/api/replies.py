"""What OpenAI's response objects have in common, and errors in their shape."""

from typing import Any, Protocol

import msgspec

from engine.errors import EngineError, RequestError
from engine.head.answer import Delta, Generation
from engine.head.api.origin import Origin

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


def stop_reason(stopped_by: str | None) -> Json:
    """vLLM's field of a choice that a stop string ended; nothing for any other."""
    return {} if stopped_by is None else {"stop_reason": stopped_by}


class Chunk(msgspec.Struct, frozen=True):
    body: Json
    told: int
    """Tokens whose text is out with it."""


class Reply(Protocol):
    """Shapes one API request's answers: either chunk by chunk, or added up and then whole.

    One delta makes one chunk, and the same deltas make the same chunks.
    """

    def opening(self) -> list[Json]:
        """Chunks before the first delta's."""

    def chunk(self, delta: Delta) -> Chunk: ...

    def closing(self) -> Json:
        """The usage chunk, without choices."""

    def usage(self) -> Json: ...

    def add(self, delta: Delta) -> None: ...

    def whole(self) -> Json: ...


class Envelope:
    """Around every object of one reply."""

    def __init__(self, prefix: str, model: str, generation: Generation, origin: Origin) -> None:
        self._generation = generation
        self._drawn = 0
        self._base: Json = {
            "id": f"{prefix}-{origin.id}",
            "object": "",
            "created": origin.created,
            "model": model,
        }

    def count(self, delta: Delta) -> None:
        self._drawn += delta.drawn is not None

    def around(self, kind: str, choices: list[Json]) -> Json:
        return self._base | {"object": kind, "choices": choices}

    def usage(self) -> Json:
        """Tokens counted so far; complete once every answer has finished."""
        prompt = self._generation.prompt_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": self._drawn,
            "total_tokens": prompt + self._drawn,
            "prompt_tokens_details": {"cached_tokens": self._generation.cached_tokens},
        }
