"""A chat's answer as a response, and as the events of one."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dashboard.gateway.dialects.parts import Answer, Change, Closed, Grew, Opened
from dashboard.gateway.dialects.responses.asked import Asked
from dashboard.gateway.dialects.responses.items import Items
from dashboard.gateway.errors import ApiError
from dashboard.gateway.pieces import Piece, Scored, Usage

Json = dict[str, Any]

ECHOED = ("instructions", "max_output_tokens", "temperature", "top_logprobs", "top_p", "user")


class ResponseReply:
    def __init__(self, number: str, asked: Asked, fields: Mapping[str, Any]) -> None:
        """`fields`: as they came, to be told again."""
        self._created = int(time.time())
        self._number = number
        self._asked = asked
        self._fields = fields
        self._answer = Answer()
        self._items = Items(number)
        self._told = 0

    def events(self, pieces: Iterable[Piece]) -> bytes:
        said = list(pieces)
        found: list[Json] = []
        if not self._told:
            for name in ("created", "in_progress"):
                response = self._response("in_progress", [])
                found.append({"type": f"response.{name}", "response": response})
        scores = [token for piece in said if isinstance(piece, Scored) for token in piece.tokens]
        for piece in said:
            for change in self._answer.take(piece):
                found += self._events(change, scores)
        return self._encoded(found)

    def ending(self) -> bytes:
        status = self._status()
        found: list[Json] = []
        for change in self._answer.close():
            found += self._items.closed(change.part, status)
        response = self._response(status, self._output())
        found.append({"type": f"response.{status}", "response": response})
        return self._encoded(found)

    def failed(self, error: ApiError) -> bytes:
        response = self._response("failed", self._output())
        code = "server_error" if error.status >= 500 else "invalid_prompt"
        response["error"] = {"code": code, "message": str(error)}
        return self._encoded([{"type": "response.failed", "response": response}])

    def whole(self, pieces: Iterable[Piece]) -> Json:
        for piece in pieces:
            self._answer.take(piece)
        return self._response(self._status(), self._output())

    def _events(self, change: Change, scores: list[Any]) -> list[Json]:
        match change:
            case Opened(part):
                return self._items.opened(part)
            case Grew(part, text):
                return self._items.grew(part, text, scores)
            case Closed(part):
                return self._items.closed(part, "completed")

    def _encoded(self, events: Iterable[Json]) -> bytes:
        found: list[bytes] = []
        for event in events:
            body = msgspec.json.encode(event | {"sequence_number": self._told})
            found.append(b"event: %s\ndata: %s\n\n" % (event["type"].encode(), body))
            self._told += 1
        return b"".join(found)

    def _status(self) -> str:
        ended = self._answer.ended
        return "incomplete" if ended is not None and ended.reason == "length" else "completed"

    def _output(self) -> list[Json]:
        """Only the last part can have been cut."""
        parts = self._answer.parts
        return [
            self._items.item(part, self._status() if part is parts[-1] else "completed")
            for part in parts
        ]

    def _response(self, status: str, output: list[Json]) -> Json:
        cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
        finished = status != "in_progress"
        return {
            "id": f"resp_{self._number}",
            "object": "response",
            "created_at": self._created,
            "completed_at": int(time.time()) if status == "completed" else None,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": cut,
            "model": self._asked.model,
            "output": output,
            "usage": _usage(self._answer.usage) if finished else None,
            **self._echo(),
        }

    def _echo(self) -> Json:
        """What was asked, with what stands where nothing was."""
        fields, asked = self._fields, self._asked
        return {
            **{name: fields.get(name) for name in ECHOED},
            "metadata": asked.metadata or {},
            "parallel_tool_calls": asked.parallel_tool_calls is not False,
            "previous_response_id": None,
            "reasoning": {"effort": asked.reasoning.effort if asked.reasoning else None},
            "store": False,
            "text": fields.get("text") or {"format": {"type": "text"}},
            "tool_choice": fields.get("tool_choice") or "auto",
            "tools": fields.get("tools") or [],
            "truncation": "disabled",
        }


def _usage(counted: Usage | None) -> Json | None:
    """The tokens of reasoning are null where the engine does not tell them apart."""
    if counted is None:
        return None
    return {
        "input_tokens": counted.prompt_tokens,
        "input_tokens_details": {"cached_tokens": counted.cached},
        "output_tokens": counted.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": counted.reasoning},
        "total_tokens": counted.prompt_tokens + counted.completion_tokens,
    }
