"""A chat's messages, checked and put as templates expect them."""

from typing import Any

import msgspec

from engine.errors import RequestError
from engine.text.template import Message

ROLES = ("system", "developer", "user", "assistant", "tool")


def read_messages(value: Any) -> list[Message]:
    """Raises RequestError naming the message and its field."""
    if not isinstance(value, list) or not value:
        raise RequestError("messages must be a non-empty list.", param="messages")
    return [_message(item, f"messages[{index}]") for index, item in enumerate(value)]


def _message(value: Any, place: str) -> Message:
    if not isinstance(value, dict):
        raise RequestError(f"{place} must be an object.", param=place)
    role = value.get("role")
    if role not in ROLES:
        raise RequestError(
            f"{place}.role must be one of {', '.join(ROLES)}.", param=f"{place}.role"
        )
    # OpenAI renamed `system` to `developer`; templates know the first name.
    message: dict[str, Any] = {"role": "system" if role == "developer" else role}
    message["content"] = _content(value.get("content"), role, f"{place}.content")
    for key in ("name", "tool_call_id"):
        if value.get(key) is not None:
            message[key] = _text(value[key], f"{place}.{key}")
    if role == "assistant":
        message |= _spoken(value, place)
    return message


def _spoken(value: dict[str, Any], place: str) -> dict[str, Any]:
    """What only the assistant has: reasoning and calls."""
    found: dict[str, Any] = {}
    for key in ("reasoning_content", "reasoning"):
        if value.get(key):
            found["reasoning_content"] = _text(value[key], f"{place}.{key}")
    calls = value.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise RequestError(f"{place}.tool_calls must be a list.", param=f"{place}.tool_calls")
    if calls:
        places = (f"{place}.tool_calls[{index}]" for index in range(len(calls)))
        found["tool_calls"] = [_call(call, at) for call, at in zip(calls, places, strict=False)]
    return found


def _call(value: Any, place: str) -> dict[str, Any]:
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise RequestError(f"{place}.function must name a function.", param=place)
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        arguments = _parsed(arguments or "{}")
    if not isinstance(arguments, dict):
        raise RequestError(
            f"{place}.function.arguments must be a JSON object.",
            param=f"{place}.function.arguments",
        )
    call: dict[str, Any] = {
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }
    return call if value.get("id") is None else call | {"id": _text(value["id"], f"{place}.id")}


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise RequestError(f"{place} must be a string.", param=place)
    return value


def _content(value: Any, role: str, place: str) -> str:
    if isinstance(value, str):
        return value
    if value is None and role == "assistant":
        return ""
    if not isinstance(value, list):
        raise RequestError(f"{place} must be a string or a list of text parts.", param=place)
    texts: list[str] = []
    for part in value:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise RequestError(f"{place}: only text parts are supported.", param=place)
        texts.append(text)
    return "".join(texts)
