"""How one family of models writes its tool calls."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from engine.text.grammar import WHITESPACE, check_optional
from engine.text.tools.parser import CallParser

Schema = dict[str, Any]


class Function(msgspec.Struct, frozen=True):
    """A tool, as a request declares it."""

    name: str
    parameters: Schema
    """JSON Schema of its arguments; `{"type": "object"}` where none was given."""
    declared: Schema
    """The tool as given, for the template."""
    strict: bool = False


Spell = Callable[[str], str]
"""A marker as a Lark terminal: a token of the vocabulary or a quoted text."""


class ToolStyle(ABC):
    name: str
    signs: tuple[str, ...]
    """A template that holds one of these writes calls in this style."""
    markers: tuple[str, ...]
    """Control tokens that must reach the parser."""
    ends: tuple[str, ...] = ()
    """Control tokens that end an answer which calls."""
    marked = True
    """Whether a call begins with the first of `markers`, and not just anyhow."""
    arguments_as_text = False
    """Whether templates expect the arguments of earlier calls as JSON text, not as objects."""

    @abstractmethod
    def parser(self) -> CallParser: ...

    @abstractmethod
    def rules(self, functions: Sequence[Function], spell: Spell, *, many: bool) -> str:
        """Lark rules of which `calls` derives one call, or several where `many`."""

    def call_id(self, source: bytes) -> str:
        """As OpenAI's look; the same for the same source."""
        return f"call_{blake2b(source, digest_size=12).hexdigest()}"


def json_rule(schema: Schema) -> str:
    """A schema inside a Lark rule, with the white space that every grammar here has.

    Raises RequestError for one that is too big.
    """
    check_optional(schema, "tools")
    guidance = {
        "item_separator": ",",
        "key_separator": ":",
        "whitespace_flexible": True,
        "whitespace_pattern": WHITESPACE,
        "lenient": False,
    }
    return "%json " + json.dumps(schema | {"x-guidance": guidance})


def call_schema(function: Function, arguments: str) -> Schema:
    """`{"name": …, arguments: {…}}`, its fields in this order."""
    return {
        "type": "object",
        "properties": {"name": {"const": function.name}, arguments: function.parameters},
        "required": ["name", arguments],
        "additionalProperties": False,
    }


def rules_of(bodies: Sequence[str]) -> str:
    """The rule `call`: one of these."""
    names = [f"call_{index}" for index in range(len(bodies))]
    lines = [f"{name}: {body}" for name, body in zip(names, bodies, strict=True)]
    return "\n".join([f"call: {' | '.join(names)}", *lines])
