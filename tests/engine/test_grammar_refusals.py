"""A form of answer that is malformed, unsupported or too big is refused before anything runs."""

import contextlib
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import RequestError
from engine.runner.grammar import Grammars
from engine.text.grammar import (
    MAX_ALTERNATIVES,
    MAX_CHARACTERS,
    MAX_LINES,
    MAX_OPTIONAL,
    MAX_REFERENCES,
    compile_choice,
    compile_ebnf,
    compile_json_object,
    compile_json_schema,
    compile_lark,
    compile_regex,
)
from engine.text.tools.style import json_rule
from tests.engine.bundled import bundled_tokenizer


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


def optional(count: int, start: int = 0) -> dict[str, Any]:
    """An object that may lack all of its properties."""
    names = [f"p{number}" for number in range(start, start + count)]
    return {"type": "object", "properties": {name: {"type": "integer"} for name in names}}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "text"}, "Invalid type"),
        ({"type": 5}, "cannot be used"),
        ({"properties": []}, "cannot be used"),
        ({"not": {"type": "string"}}, "Unimplemented"),
        ({"x-guidance": {"lenient": True}, "not": {}}, "Unimplemented"),
        ({"$ref": "#/$defs/nowhere"}, "does not exist"),
        ({"$ref": "https://example.com/schema"}, "not present"),
        ({"type": "string", "pattern": "(a"}, "unclosed group"),
        ({"type": "string", "format": "frob"}, "Unknown format"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "Unsatisfiable"),
        ({"enum": []}, "cannot be used"),
        ({"const": float("nan")}, "not JSON"),
        ({"const": "\ud800"}, "not valid"),
        (nested(200), "recursion limit"),
        (nested(100_000), "not JSON"),
        (False, "accepts nothing"),
        ({"items": optional(MAX_OPTIONAL + 1)}, "optional properties, the limit"),
        ({"allOf": [optional(400, 400 * part) for part in range(9)]}, "too big"),
        ({"enum": ["x" * MAX_CHARACTERS]}, "characters, the limit"),
        ({"anyOf": [{"$ref": "#"}] * (MAX_REFERENCES + 1)}, "references, the limit"),
    ],
)
def test_a_schema_that_cannot_be_followed_is_refused(schema: Any, why: str) -> None:
    with pytest.raises(RequestError, match=why) as refused:
        compile_json_schema(schema)
    assert refused.value.status == 400
    assert refused.value.param == "response_format"


@pytest.mark.parametrize("text", ["(a", "(?=a)b", r"(a)\1", "\ud800", "(" * 1000, "a|" * 6000])
def test_a_broken_or_oversized_expression_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        compile_regex(text)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "text",
    [
        "",
        "start: nowhere",
        "start: (",
        'root ::= "a" (',
        'root ::= "a',
        "root ::= [a",
        "root ::= nowhere",
        'branch ::= "a"',
        'root ::= "a"{3,1}',
        'root ::= "a"\nroot ::= "b"',
        'root ::= "a" ?? ::= "b"',
        "root ::= \x00",
        "root ::= " + "(" * 5000,
        "root ::= " + '"a"{1000000000000000000000}',
        'start: "a"' + "\n" * (MAX_LINES + 1),
        "start: " + "|".join(['"a"'] * (MAX_ALTERNATIVES + 2)),
        "start: " + "(" * 10_000,
    ],
)
def test_a_broken_or_oversized_grammar_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        compile_ebnf(text)
    assert refused.value.status == 400


def test_a_choice_needs_options() -> None:
    for options in ([], ["a", ""], ["x"] * (MAX_ALTERNATIVES + 1), ["\ud800"]):
        with pytest.raises(RequestError):
            compile_choice(options)


def test_what_is_allowed_compiles() -> None:
    assert compile_json_schema(True)
    assert compile_json_object()
    assert compile_regex(r"\d+ (apples|pears)/[^/]")
    assert compile_choice(["a", 'b"', "c\\", "\n", "漢", "🙂"])
    assert compile_lark('start: "call " %json {"type": "integer"}')
    chain = "".join(f'r{rule} ::= "a" r{rule + 1}\n' for rule in range(900))
    assert compile_ebnf(f'root ::= r0\n{chain}r900 ::= "z"')


def test_the_most_optional_properties_can_be_followed() -> None:
    tokenizer = bundled_tokenizer()
    required = {"required": [f"p{number}" for number in range(50)]}
    schema = {"anyOf": [optional(MAX_OPTIONAL), optional(MAX_OPTIONAL + 50) | required]}
    follower = Grammars(lambda: tokenizer).follow(compile_json_schema(schema))
    for token in tokenizer.encode(f'{{"p{MAX_OPTIONAL - 1}":1}}'):
        assert follower.allowed(token + 1)[token]
        follower.advance([token])


def test_a_tool_with_too_many_optional_parameters_is_refused() -> None:
    with pytest.raises(RequestError, match="optional properties") as refused:
        json_rule(optional(MAX_OPTIONAL + 1))
    assert refused.value.param == "tools"


def test_the_longest_chain_of_references_does_not_end_the_process() -> None:
    """The compiler recurses over references: too many would overflow its stack."""
    script = (
        "from engine.text.grammar import *\n"
        "links = {f'd{i}': {'$ref': f'#/$defs/d{i + 1}'} for i in range(MAX_REFERENCES - 1)}\n"
        "end = {f'd{MAX_REFERENCES - 1}': {'type': 'null'}}\n"
        "compile_json_schema({'$ref': '#/$defs/d0', '$defs': links | end})\n"
        "rules = ''.join(f'R{i}: \"a\" R{i + 1}\\n' for i in range(MAX_LINES - 2))\n"
        "compile_ebnf(f'start: R0\\n{rules}R{MAX_LINES - 2}: \"z\"')\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "items",
                    "enum",
                    "$ref",
                    "anyOf",
                    "pattern",
                    "minimum",
                    "$defs",
                ]
            )
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.sampled_from(["type", "properties", "items", "x-guidance"]), junk))
def test_junk_is_a_schema_or_a_400(schema: dict[str, Any]) -> None:
    with contextlib.suppress(RequestError):
        assert json.loads(compile_json_schema(schema))


@settings(deadline=None, max_examples=150)
@given(st.text(st.sampled_from('ra"[]()|*+?{}:=\\.-/ \n#1u%<>'), max_size=40))
def test_junk_is_a_grammar_or_a_400(text: str) -> None:
    for source in (text, f"root ::= {text}", f"start: {text}"):
        with contextlib.suppress(RequestError):
            assert compile_ebnf(source)
