"""The tools a chat may use, and whether it must."""

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from engine.errors import RequestError
from engine.head.api.fields import Fields
from engine.text.tools import Function

MAX_TOOLS = 128
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Tools(msgspec.Struct, frozen=True):
    functions: Sequence[Function] = ()
    """Those the model is told of: none of them when it may not call any."""
    forced: Sequence[Function] = ()
    """The answer must be a call of one of these; empty where it is free."""
    parallel: bool = True
    """Whether several calls may come at once."""


def read_tools(fields: Fields) -> Tools:
    """Raises RequestError naming the field."""
    functions = _functions(fields.raw("tools"))
    parallel = fields.flag("parallel_tool_calls", default=True)
    choice = _choice(fields.raw("tool_choice"), functions)
    if choice == "none":
        return Tools()
    if choice == "auto":
        return Tools(functions, parallel=parallel)
    if choice == "required":
        return Tools(functions, functions, parallel)
    return Tools(functions, [choice], False)


def _functions(value: Any) -> list[Function]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > MAX_TOOLS:
        raise RequestError(f"tools must be a list of at most {MAX_TOOLS}.", param="tools")
    functions = [_function(item, f"tools[{index}]") for index, item in enumerate(value)]
    names = [function.name for function in functions]
    if len(set(names)) < len(names):
        raise RequestError("Two tools have the same name.", param="tools")
    return functions


def _function(value: Any, place: str) -> Function:
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(function, dict) or value.get("type") != "function":
        raise RequestError(f'{place} must be {{"type": "function", "function": …}}.', param=place)
    name = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RequestError(
            f"{place}.function.name must be 1 to 64 letters, digits, dots, dashes or underscores.",
            param=f"{place}.function.name",
        )
    for key, kind in (("description", str), ("parameters", dict), ("strict", bool)):
        if not isinstance(function.get(key), kind | None):
            raise RequestError(
                f"{place}.function.{key} has the wrong type.", param=f"{place}.function.{key}"
            )
    parameters = {"type": "object", **(function.get("parameters") or {"properties": {}})}
    if parameters["type"] != "object":
        raise RequestError(
            f"{place}.function.parameters must describe an object.",
            param=f"{place}.function.parameters",
        )
    return Function(
        name=name,
        parameters=parameters,
        declared=value | {"function": {"description": "", "parameters": parameters} | function},
        strict=bool(function.get("strict")),
    )


def _choice(
    value: Any, functions: Sequence[Function]
) -> Literal["none", "auto", "required"] | Function:
    if value is None or value == "auto":
        return "auto" if functions else "none"
    if value == "none":
        return "none"
    if value != "required" and not (isinstance(value, dict) and value.get("type") == "function"):
        raise RequestError(
            "tool_choice must be none, auto, required or name a function.", param="tool_choice"
        )
    if not functions:
        raise RequestError("tool_choice needs tools.", param="tool_choice")
    if value == "required":
        return "required"
    chosen = value.get("function")
    name = chosen.get("name") if isinstance(chosen, dict) else None
    for function in functions:
        if function.name == name:
            return function
    raise RequestError("tool_choice names no function of tools.", param="tool_choice")
