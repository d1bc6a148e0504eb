"""Calls written as one JSON object, `{"name": …, "arguments": {…}}`."""

import json
import re
from typing import Any

import msgspec

from engine.text.tools.json_span import JsonSpan
from engine.text.tools.parser import CallParser

_HEAD = re.compile(
    r'\s*\{\s*(?:"type"\s*:\s*"function"\s*,\s*)?"name"\s*:\s*("(?:[^"\\]|\\.)*")'
    r'\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)'
)


class WholeCall(msgspec.Struct, frozen=True):
    name: str
    arguments: str


class JsonCallParser(CallParser):
    """Reads the object; a style says what stands around it."""

    def __init__(self) -> None:
        super().__init__()
        self._object = JsonSpan()
        self._scanned = 0

    def _read_object(self, start: int) -> bool | None:
        """The call whose object starts there in the buffer. None while it cannot be told, False
        when it is none."""
        match = _HEAD.match(self._buffer, start)
        name = load(match[1]) if match else None
        if match and isinstance(name, str) and name:
            self._object, self._scanned = JsonSpan("{"), 0
            return self._begin(name, match.end())
        text = self._buffer[start:].lstrip()
        if not text:
            return None
        done = text[0] != "{" or self._read_to_end(len(self._buffer) - len(text))
        return self._read_whole(start) if done else None

    def _read_to_end(self, start: int) -> bool:
        """Its name does not come first: everything has to be there."""
        start = max(start, self._scanned)
        self._scanned = start + self._object.feed(self._buffer[start:])
        return self._object.done or self._object.broken

    def _read_whole(self, start: int) -> bool:
        end = self._scanned
        self._object, self._scanned = JsonSpan(), 0
        call = read_call(self._buffer[start:end])
        return call is not None and self._whole(call.name, call.arguments, end)

    def _tail(self) -> bool:
        self._buffer = self._buffer[self._object.feed(self._buffer) :]
        if self._object.done or self._object.broken:
            self._object = JsonSpan()
            return super()._tail()
        return False


def read_call(text: str) -> WholeCall | None:
    """A whole object as a call; None when it is none."""
    value = load(text)
    if not isinstance(value, dict):
        return None
    name = value.pop("name", None)
    given = [value.pop(key) for key in ("arguments", "parameters") if key in value]
    arguments = _arguments_text(given[0] if given else {})
    if not isinstance(name, str) or not name or arguments is None or (value and not given):
        return None
    return WholeCall(name, arguments)


def load(text: str) -> Any:
    """The JSON value; None when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _arguments_text(value: Any) -> str | None:
    """Some models write the arguments as a string that holds JSON."""
    if isinstance(value, str):
        return value if isinstance(load(value), dict) else None
    value = {} if value is None else value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else None
