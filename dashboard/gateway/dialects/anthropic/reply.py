"""A chat's answer as a message, and as the events of one."""

from collections.abc import Iterable
from typing import Any

import msgspec

from dashboard.gateway.dialects.anthropic.errors import envelope
from dashboard.gateway.dialects.parts import Answer, Change, Closed, Grew, Opened, Part
from dashboard.gateway.errors import ApiError
from dashboard.gateway.pieces import Piece, Usage

Json = dict[str, Any]

REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
CUT = "partial_json"
"""Under this name stand the arguments of a call that its limit cut short: they are no JSON yet."""


class MessageReply:
    def __init__(self, number: str, model: str) -> None:
        self._id = f"msg_{number}"
        self._model = model
        self._answer = Answer()
        self._begun = False

    def events(self, pieces: Iterable[Piece]) -> bytes:
        found: list[Json] = []
        for piece in pieces:
            changes = self._answer.take(piece)
            if not self._begun:
                # Only the first count knows of the prompt alone, so it goes before.
                self._begun = True
                found.append({"type": "message_start", "message": self._message([])})
            found += map(_event, changes)
        return b"".join(map(_encoded, found))

    def ending(self) -> bytes:
        found = [_event(change) for change in self._answer.close()]
        delta = {"stop_reason": self._reason(), "stop_sequence": self._stopped_by()}
        found.append({"type": "message_delta", "delta": delta, "usage": self._usage()})
        found.append({"type": "message_stop"})
        return b"".join(map(_encoded, found))

    def failed(self, error: ApiError) -> bytes:
        return _encoded(envelope(error))

    def whole(self, pieces: Iterable[Piece]) -> Json:
        for piece in pieces:
            self._answer.take(piece)
        return self._message([_block(part) for part in self._answer.parts])

    def _message(self, content: list[Json]) -> Json:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": self._reason(),
            "stop_sequence": self._stopped_by(),
            "usage": self._usage(),
        }

    def _reason(self) -> str | None:
        ended = self._answer.ended
        if ended is None:
            return None
        return "stop_sequence" if ended.stopped_by is not None else REASONS.get(ended.reason)

    def _stopped_by(self) -> str | None:
        return self._answer.ended.stopped_by if self._answer.ended else None

    def _usage(self) -> Json:
        return _usage(self._answer.usage)


def _usage(counted: Usage | None) -> Json:
    """What the cache gave is not among `input_tokens`. No count is null."""
    if counted is None:
        return {"input_tokens": None, "output_tokens": None}
    usage: Json = {
        "input_tokens": counted.prompt_tokens - (counted.cached or 0),
        "output_tokens": counted.completion_tokens,
        "cache_read_input_tokens": counted.cached,
    }
    if counted.reasoning is not None:
        usage["output_tokens_details"] = {"thinking_tokens": counted.reasoning}
    return usage


def _block(part: Part) -> Json:
    match part.kind:
        case "text":
            return {"type": "text", "text": part.text}
        case "reasoning":
            return {"type": "thinking", "thinking": part.text, "signature": ""}
    return {"type": "tool_use", "id": part.id, "name": part.name, "input": _input(part.text)}


def _input(arguments: str) -> Json:
    try:
        found = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return {CUT: arguments}
    return found if isinstance(found, dict) else {CUT: arguments}


def _event(change: Change) -> Json:
    index = change.part.index
    match change:
        case Opened(part):
            empty = _block(Part(part.kind, index, part.id, part.name))
            return {"type": "content_block_start", "index": index, "content_block": empty}
        case Grew(part, text):
            return {"type": "content_block_delta", "index": index, "delta": _delta(part, text)}
        case Closed():
            return {"type": "content_block_stop", "index": index}


def _delta(part: Part, text: str) -> Json:
    match part.kind:
        case "text":
            return {"type": "text_delta", "text": text}
        case "reasoning":
            return {"type": "thinking_delta", "thinking": text}
    return {"type": "input_json_delta", "partial_json": text}


def _encoded(body: Json) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (body["type"].encode(), msgspec.json.encode(body))
