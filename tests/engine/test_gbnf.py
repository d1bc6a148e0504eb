"""Grammars in llama.cpp's notation accept the texts they derive, and no others."""

import pytest
from llguidance import LLMatcher

from engine.runner.grammar import Grammars
from engine.text.grammar import compile_ebnf
from tests.engine.bundled import bundled_tokenizer

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,3})? ws
ws ::= | " " | "\n" [ \t]{0,20}  # as llama.cpp writes it
"""
LIST = 'root ::= item+\nitem ::= "- " [^\\r\\n\x0b\x0c]+ "\\n"'
CASES = [
    (JSON, ['{"a": [1, -2.5e3, "x\\n\\u00e9", {}], "b": null}', "{}"], ["[]", '{"a"}', "{'a': 1}"]),
    (LIST, ["- one\n- two\n"], ["one\n", "- one"]),
    ('root ::= ("a" | "ab") "bc"', ["abc", "abbc"], ["ab", "abb"]),
    ('root ::= [a-z]+ "x"', ["aax", "xx"], ["x", "aa"]),
    ('root ::= start-rule "!"\nstart-rule ::= "go" | root', ["go!", "go!!"], ["go"]),
    ('root ::= "\\u0041\\x42\\U00000043\\"\\\\\\n"', ['ABC"\\\n'], ["ABC"]),
    ("root ::= [\\]\\-x/^]{2} [^^a]", ["]-b", "/^/"], ["]-a", "a-b"]),
    ('root ::= "a"{2} "b"{,2} "c"{1,}', ["aac", "aabbcc"], ["aa", "aabbbc", "ac"]),
    ("root ::= . .", ["漢\n", "🙂a"], ["a", "abc"]),
    ('root ::= a\n  | b\na ::= "1"\nb ::= (\n "2"\n)', ["1", "2"], ["12"]),
]


@pytest.fixture(scope="module")
def grammars() -> Grammars:
    return Grammars(bundled_tokenizer)


def accepts(grammars: Grammars, grammar: str, text: str) -> bool:
    matcher = LLMatcher(grammars.tokenizer, grammar)
    tokens = bundled_tokenizer().encode(text)
    assert not matcher.is_error(), matcher.get_error()
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


@pytest.mark.parametrize(("source", "derived", "others"), CASES)
def test_a_grammar_accepts_what_it_derives(
    grammars: Grammars, source: str, derived: list[str], others: list[str]
) -> None:
    grammar = compile_ebnf(source)
    assert [text for text in derived if not accepts(grammars, grammar, text)] == []
    assert [text for text in others if accepts(grammars, grammar, text)] == []
