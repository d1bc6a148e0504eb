"""The form an answer is asked to have: OpenAI's `response_format`, or vLLM's names."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from engine.errors import RequestError
from engine.head.api.fields import Fields
from engine.text.grammar import (
    compile_choice,
    compile_ebnf,
    compile_json_object,
    compile_json_schema,
    compile_regex,
)

Compile = Callable[[], str]


class Form(msgspec.Struct, frozen=True):
    """One form. `compile` gives its grammar; that may take a while and may raise RequestError."""

    param: str
    compile: Compile


def read_form(fields: Fields) -> Form | None:
    """Raises RequestError for more than one form or a malformed one."""
    forms = [_response_format(fields.raw("response_format"))]
    forms += _guided(fields)
    found = [form for form in forms if form is not None]
    if len(found) > 1:
        raise RequestError(
            f"{found[1].param} cannot be combined with {found[0].param}.", param=found[1].param
        )
    return found[0] if found else None


def _response_format(value: Any) -> Form | None:
    param = "response_format"
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return Form(param, lambda: compile_json_object(param=param))
    if kind != "json_schema":
        raise RequestError(
            "response_format.type must be text, json_object or json_schema.", param=param
        )
    described = value.get("json_schema")
    schema = described.get("schema") if isinstance(described, dict) else None
    if not isinstance(schema, dict | bool):
        raise RequestError("response_format.json_schema.schema must be an object.", param=param)
    return Form(param, lambda: compile_json_schema(schema, param=param))


def _guided(fields: Fields) -> list[Form]:
    forms: list[Form] = []
    for key in _READERS:
        name = f"guided_{key}"
        if (value := fields.raw(name)) is not None:
            forms.append(_READERS[key](value, name))
    outputs = fields.raw("structured_outputs")
    if outputs is not None and not isinstance(outputs, dict):
        raise RequestError("structured_outputs must be an object.", param="structured_outputs")
    for key, value in (outputs or {}).items():
        name = f"structured_outputs.{key}"
        if key == "json_object" and value is True:
            forms.append(_json_object(name))
        elif key in _READERS and value is not None:
            forms.append(_READERS[key](value, name))
        elif key in ("structural_tag", "whitespace_pattern") and value is not None:
            raise RequestError(
                f"{name} is not supported by this engine.",
                param=name,
                code="unsupported_parameter",
            )
    return forms


def _json_object(param: str) -> Form:
    return Form(param, lambda: compile_json_object(param=param))


def _json(value: Any, param: str) -> Form:
    """A schema, or the text of one."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError) as error:
            raise RequestError(f"{param} is not valid JSON.", param=param) from error
    if not isinstance(value, dict | bool):
        raise RequestError(f"{param} must be a JSON schema.", param=param)
    return Form(param, lambda: compile_json_schema(value, param=param))


def _regex(value: Any, param: str) -> Form:
    text = _text(value, param)
    return Form(param, lambda: compile_regex(text, param=param))


def _grammar(value: Any, param: str) -> Form:
    text = _text(value, param)
    return Form(param, lambda: compile_ebnf(text, param=param))


def _choice(value: Any, param: str) -> Form:
    if not isinstance(value, list) or not all(isinstance(option, str) for option in value):
        raise RequestError(f"{param} must be a list of strings.", param=param)
    return Form(param, lambda: compile_choice(value, param=param))


def _text(value: Any, param: str) -> str:
    if not isinstance(value, str) or not value:
        raise RequestError(f"{param} must be a non-empty string.", param=param)
    return value


_READERS: Mapping[str, Callable[[Any, str], Form]] = {
    "json": _json,
    "regex": _regex,
    "grammar": _grammar,
    "choice": _choice,
}
