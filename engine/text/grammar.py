"""What an answer must look like, compiled to the form that ranks follow token by token.

JSON schemas, regular expressions, context-free grammars and choices become llguidance's serialised
grammars (https://github.com/guidance-ai/llguidance, docs/syntax.md and docs/json_schema.md).
Everything is checked here: what is malformed, unsupported or too big is a RequestError that says
why. Sizes are bounded because the compiler recurses over rules and references.

Takes milliseconds, at worst about half a second, most of it without the interpreter lock.
"""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llguidance import LLMatcher, LLParserLimits

from engine.errors import RequestError
from engine.text.gbnf import GbnfError, gbnf_to_lark

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

MAX_CHARACTERS = 128 * 1024
MAX_LINES = 1000
"""Of a grammar: each may hold a rule that leads to the next."""
MAX_REFERENCES = 1000
MAX_ALTERNATIVES = 5000
MAX_OPTIONAL = 450
"""Properties that one object may lack. Each leads to all behind it: some more and no row of the
parser holds them, and a rank would compile for seconds while every answer waits."""
LIMITS = LLParserLimits(initial_lexer_fuel=300_000, max_grammar_size=16_000, verbose_errors=False)

WHITESPACE = r"( |\n {0,20})"
"""Between the parts of JSON: one space, or a line break with indentation. Never more: a model that
likes spaces must not fill its answer with them."""
JSON_OPTIONS: "JsonCompileOptions" = {
    "item_separator": ",",
    "key_separator": ":",
    "whitespace_flexible": True,
    "whitespace_pattern": WHITESPACE,
    "lenient": False,
}

_REFERENCE = re.compile(r"\$ref|\\u00(?:24|72|65|66)", re.IGNORECASE)
_LARK = re.compile(r"(?m)^\s*(?:%llguidance\b|start\s*:(?!:=))")


def compile_json_schema(
    schema: dict[str, Any] | bool, *, param: str | None = "response_format"
) -> str:
    """JSON that this JSON Schema (draft 2020-12, as far as llguidance goes) accepts.

    Raises RequestError for a schema that is malformed, unsupported, unsatisfiable or too big.
    """
    if schema is False:
        raise RequestError("The JSON schema accepts nothing.", param=param)
    try:
        text = json.dumps({} if schema is True else schema, allow_nan=False)
    except (RecursionError, TypeError, ValueError) as error:
        raise RequestError(f"The JSON schema is not JSON: {error}.", param=param) from error
    _check_size(text, "JSON schema", param)
    check_optional(schema, param)
    try:
        grammar = LLMatcher.grammar_from_json_schema(text, overrides=JSON_OPTIONS)
    except ValueError as error:
        raise RequestError(f"The JSON schema is not valid: {error}.", param=param) from error
    return _checked(grammar, "JSON schema", param)


def compile_json_object(*, param: str | None = "response_format") -> str:
    """Any JSON object."""
    return compile_json_schema({"type": "object"}, param=param)


def compile_regex(pattern: str, *, param: str | None = "guided_regex") -> str:
    """Text that the whole of this regular expression matches; no look-around, no back-reference."""
    _check_size(pattern, "regular expression", param)
    return _checked(LLMatcher.grammar_from_regex(pattern), "regular expression", param)


def compile_ebnf(text: str, *, param: str | None = "guided_grammar") -> str:
    """Text that a grammar derives: Lark syntax with a `start` rule, or GBNF with a `root` rule."""
    _check_size(text, "grammar", param)
    if not _LARK.search(text):
        try:
            text = gbnf_to_lark(text)
        except GbnfError as error:
            raise RequestError(f"The grammar is not valid: {error}.", param=param) from error
    return compile_lark(text, param=param)


def compile_lark(text: str, *, param: str | None = "tools") -> str:
    """Text that a grammar in llguidance's Lark syntax derives; `%json {…}` embeds a schema."""
    _check_size(text, "grammar", param)
    return _checked(LLMatcher.grammar_from_lark(text), "grammar", param)


def compile_outline(lark: str, answer: str = "", *, param: str | None = "tools") -> str:
    """A grammar in llguidance's Lark syntax that may refer to another, compiled, as `@answer`."""
    _check_size(lark, "grammar", param)
    if not answer:
        return compile_lark(lark, param=param)
    inner = json.loads(answer)["grammars"][0] if answer[0] == "{" else {"lark_grammar": answer}
    outer = {"name": "outline", "lark_grammar": lark}
    both = {"grammars": [outer, {**inner, "name": "answer"}]}
    return _checked(json.dumps(both), "grammar", param)


def compile_choice(options: Sequence[str], *, param: str | None = "guided_choice") -> str:
    """Exactly one of these texts."""
    if not options or not all(options):
        raise RequestError("A choice needs options, none of them empty.", param=param)
    if len(options) > MAX_ALTERNATIVES:
        raise RequestError(f"A choice may have {MAX_ALTERNATIVES} options.", param=param)
    try:
        "".join(options).encode()
    except UnicodeEncodeError as error:
        raise RequestError("An option is not valid Unicode.", param=param) from error
    alternatives = "|".join(json.dumps(option, ensure_ascii=False) for option in options)
    return compile_lark(f"start: {alternatives}", param=param)


def check_optional(schema: Any, param: str | None) -> None:
    """Raises RequestError when an object of this schema has too many optional properties."""
    todo = [schema]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            properties, required = item.get("properties"), item.get("required")
            if isinstance(properties, dict) and len(properties) > MAX_OPTIONAL:
                named = required if isinstance(required, list) else []
                optional = len(
                    properties.keys() - {name for name in named if isinstance(name, str)}
                )
                if optional > MAX_OPTIONAL:
                    raise RequestError(
                        f"An object of the JSON schema has {optional} optional properties, the "
                        f"limit is {MAX_OPTIONAL}.",
                        param=param,
                    )
            todo += item.values()
        elif isinstance(item, list):
            todo += item


def _check_size(text: str, what: str, param: str | None) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(f"The {what} is not valid Unicode.", param=param) from error
    bounds = (
        ("characters", len(text), MAX_CHARACTERS),
        ("lines", text.count("\n") + text.count("\r"), MAX_LINES),
        ("references", len(_REFERENCE.findall(text)), MAX_REFERENCES),
        ("alternatives", text.count("|"), MAX_ALTERNATIVES),
    )
    for unit, size, limit in bounds:
        if size > limit:
            raise RequestError(f"The {what} has {size} {unit}, the limit is {limit}.", param=param)


def _checked(grammar: str, what: str, param: str | None) -> str:
    message = LLMatcher.validate_grammar(grammar, limits=LIMITS)
    if message:
        raise RequestError(f"The {what} cannot be used: {_reason(message)}.", param=param)
    return grammar


def _reason(message: str) -> str:
    """The first line of what the compiler says, and the cause a regular expression adds to it."""
    lines = [line.strip() for line in message.strip().splitlines()]
    causes = [line for line in lines[1:] if line.startswith("error:")]
    return " ".join([lines[0], *causes])[:300].rstrip(".")
