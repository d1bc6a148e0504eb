"""A grammar for a whole answer forces well-formed calls, and leaves room for reasoning."""

from functools import cache

import pytest

from engine.runner.grammar import Grammars
from engine.text.grammar import compile_json_object
from engine.text.outline import Calls, Outliner, strict_calls
from engine.text.reasoning import KNOWN
from engine.text.tokenizer import TextTokenizer
from engine.text.tools import Function, ToolStyle
from engine.text.tools.deepseek import BEGIN, CALL, CALL_END, END, SEPARATOR, DeepSeek
from engine.text.tools.hermes import Hermes
from engine.text.tools.llama import Llama
from engine.text.tools.mistral import Mistral
from tests.engine.bundled import altered_checkpoint, bundled_tokenizer

PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
FUNCTIONS = [
    Function("f", PARAMETERS, {}, strict=True),
    Function("g", {"type": "object"}, {}),
]


@cache
def special() -> TextTokenizer:
    """A vocabulary in which some markers are control tokens."""
    controls = ("[TOOL_CALLS]", "[ARGS]", "<think>", "</think>", BEGIN, END, CALL, CALL_END)
    return TextTokenizer(altered_checkpoint(controls=controls).tokenizer)


@cache
def grammars(spelled: bool) -> Grammars:
    return Grammars(bundled_tokenizer if spelled else special)


def accepts(grammar: str, text: str, *, spelled: bool = True) -> bool:
    """Whether this is one complete answer."""
    tokenizer = bundled_tokenizer() if spelled else special()
    follower = grammars(spelled).follow(grammar)
    for token in tokenizer.encode_trusted(text):
        if not follower.allowed(tokenizer.size)[token]:
            return False
        follower.advance([token])
    return bool(follower.allowed(tokenizer.size)[min(tokenizer.stop_ids)])


def calls(style: ToolStyle, *, many: bool = True, forced: bool = True) -> Calls:
    return Calls(style=style, functions=FUNCTIONS, many=many, forced=forced)


def deepseek(name: str, arguments: str) -> str:
    return f"{CALL}function{SEPARATOR}{name}\n```json\n{arguments}\n```{CALL_END}"


@pytest.mark.parametrize("spelled", [True, False])
@pytest.mark.parametrize(
    ("style", "one", "two"),
    [
        (
            Hermes(),
            '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
            '\n<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>',
        ),
        (Llama(), '{"name": "f", "parameters": {"a": 1}}', ';{"name": "g", "parameters": {}}'),
        (
            Mistral(named=True),
            '[TOOL_CALLS]f[ARGS]{"a": 1}',
            "[TOOL_CALLS]g[ARGS]{}",
        ),
        (DeepSeek(), BEGIN + deepseek("f", '{"a": 1}'), "\n" + deepseek("g", "{}")),
    ],
)
def test_a_forced_answer_is_calls_and_nothing_else(
    style: ToolStyle, one: str, two: str, spelled: bool
) -> None:
    end = END if isinstance(style, DeepSeek) else ""
    outliner = Outliner(bundled_tokenizer() if spelled else special(), None)
    many = outliner.compile(calls=calls(style), thinking=False, silent=True)
    single = outliner.compile(calls=calls(style, many=False), thinking=False, silent=True)
    for grammar in (many, single):
        assert accepts(grammar, one + end, spelled=spelled)
        assert accepts(grammar, one + two + end, spelled=spelled) == (grammar == many)
        assert not accepts(grammar, "Hello", spelled=spelled)
        assert not accepts(grammar, one.replace("1", '"x"') + end, spelled=spelled)


def test_a_strict_call_is_held_to_its_schema_but_never_forced() -> None:
    free = calls(Hermes(), forced=False)
    assert strict_calls(free)
    assert not strict_calls(calls(Llama(), forced=False))
    grammar = Outliner(bundled_tokenizer(), None).compile(calls=free, thinking=False, silent=True)
    call = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    assert accepts(grammar, "Hello, 1 < 2.")
    assert accepts(grammar, "")
    assert accepts(grammar, f"I will.\n{call}")
    assert accepts(grammar, f"{call}\n{call}")
    assert not accepts(grammar, f"I will.\n{call.replace('1', 'null')}")


def test_an_answer_of_a_form_may_be_a_call_instead() -> None:
    grammar = Outliner(bundled_tokenizer(), None).compile(
        answer=compile_json_object(),
        calls=calls(Hermes(), forced=False),
        thinking=False,
        silent=True,
    )
    assert accepts(grammar, '{"x": 1}')
    assert accepts(grammar, '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>')
    assert not accepts(grammar, "Hello")


@pytest.mark.parametrize("spelled", [True, False])
def test_reasoning_comes_before_a_form(spelled: bool) -> None:
    outliner = Outliner(bundled_tokenizer() if spelled else special(), KNOWN[0])
    form = compile_json_object()

    def fits(text: str, *, thinking: bool = False, silent: bool = False) -> bool:
        grammar = outliner.compile(answer=form, thinking=thinking, silent=silent)
        return accepts(grammar, text, spelled=spelled)

    assert fits('Hm {.\n</think>\n\n{"x": 1}', thinking=True)
    assert not fits('{"x": 1}', thinking=True)
    assert fits('<think>\nHm.</think>\n\n{"x": 1}')
    assert fits('{"x": 1}')
    assert not fits("Hm.</think>")
    assert fits('{"x": 1}', silent=True)
    assert not fits('<think>\n</think>{"x": 1}', silent=True)
