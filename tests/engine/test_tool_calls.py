"""Tool calls are read out of an answer's text, wherever its tokens cut it."""

import json
import random
from itertools import pairwise

import pytest

from engine.text.tools import CallArguments, CallParser, CallStart, Text, choose_style
from engine.text.tools.deepseek import BEGIN, CALL, CALL_END, END, SEPARATOR, DeepSeek
from engine.text.tools.hermes import Hermes
from engine.text.tools.llama import Llama
from engine.text.tools.mistral import Mistral

Read = tuple[str, list[tuple[str, str]], bool]

TRICKY = '{"a": "x}]\\" <tool_call> \\\\", "b": [1, {"c": "[ARGS]"}], "ü": "漢字 🙂"}'
HERMES = f'<tool_call>\n{{"name": "f", "arguments": {TRICKY}}}\n</tool_call>'


def read(parser: CallParser, pieces: list[str]) -> Read:
    """Content, calls, and whether the last call is unfinished."""
    content, calls = "", list[tuple[str, str]]()
    told = [piece for text in pieces for piece in parser.feed(text)] + parser.finish()
    for piece in told:
        match piece:
            case Text(text):
                content += text
            case CallStart(index, name):
                assert index == len(calls)
                calls.append((name, ""))
            case CallArguments(index, text):
                assert index == len(calls) - 1
                calls[index] = (calls[index][0], calls[index][1] + text)
    return content, calls, parser.unfinished


def cuts(text: str) -> list[list[str]]:
    """The text whole, by character, and in random pieces."""
    found = [[text], list(text)]
    for seed in range(20):
        inner = random.Random(seed).sample(range(len(text) + 1), min(6, len(text)))
        edges = [0, *sorted(inner), len(text)]
        found.append([text[a:b] for a, b in pairwise(edges)])
    return found


def deepseek_v3(name: str, arguments: str) -> str:
    return f"{CALL}function{SEPARATOR}{name}\n```json\n{arguments}\n```{CALL_END}"


STYLES = {
    "hermes": Hermes(),
    "llama": Llama(),
    "mistral": Mistral(),
    "deepseek": DeepSeek(),
}

CASES: list[tuple[str, str, str, list[tuple[str, str]]]] = [
    ("hermes", f"I will.\n{HERMES}\n{HERMES}\n", "I will.", [("f", TRICKY), ("f", TRICKY)]),
    ("hermes", f"{HERMES} and more <tool", "and more <tool", [("f", TRICKY)]),
    ("hermes", '<tool_call>{"arguments": {"a": 1}, "name": "g"}', "", [("g", '{"a": 1}')]),
    ("hermes", '<tool_call>{"name": "g"}</tool_call>', "", [("g", "{}")]),
    ("hermes", '<tool_call>{"name": "g", "arguments": "{}"}</tool_call>', "", [("g", "{}")]),
    ("hermes", "<tool_call>no</tool_call> x", "<tool_call>no</tool_call> x", []),
    ("hermes", '<tool_call>{"name": 5} x', '<tool_call>{"name": 5} x', []),
    ("hermes", "  1 < 2, <tool>  ", "  1 < 2, <tool>  ", []),
    (
        "llama",
        f'{{"name": "f", "parameters": {TRICKY}}}; {{"name": "g", "parameters": {{}}}}',
        "",
        [("f", TRICKY), ("g", "{}")],
    ),
    ("llama", '<|python_tag|>{"name": "f", "parameters": {}}', "", [("f", "{}")]),
    ("llama", '{"type": "function", "name": "f", "parameters": {}}', "", [("f", "{}")]),
    ("llama", '{"name": "Ann", "age": 3}!', '{"name": "Ann", "age": 3}!', []),
    ("llama", 'Say {"name": "f", "parameters": {}}', 'Say {"name": "f", "parameters": {}}', []),
    (
        "mistral",
        f'[TOOL_CALLS] [{{"name": "f", "arguments": {TRICKY}}}, '
        '{"name": "g", "arguments": {}}]',
        "",
        [("f", TRICKY), ("g", "{}")],
    ),
    (
        "mistral",
        f"Ok.[TOOL_CALLS]f[ARGS]{TRICKY}[TOOL_CALLS]g[CALL_ID]a1b2c3d4e[ARGS]{{}}",
        "Ok.",
        [("f", TRICKY), ("g", "{}")],
    ),
    ("mistral", "[TOOL_CALLS] nothing", "[TOOL_CALLS] nothing", []),
    (
        "deepseek",
        f"Hm.{BEGIN}{deepseek_v3('f', TRICKY)}\n{deepseek_v3('g', '{}')}{END}",
        "Hm.",
        [("f", TRICKY), ("g", "{}")],
    ),
    (
        "deepseek",
        f"{BEGIN}{CALL}f{SEPARATOR}{TRICKY}{CALL_END}{CALL}g{SEPARATOR}{{}}{CALL_END}{END}",
        "",
        [("f", TRICKY), ("g", "{}")],
    ),
    ("deepseek", f"{BEGIN} nothing", f"{BEGIN} nothing", []),
]


@pytest.mark.parametrize(("style", "text", "content", "calls"), CASES)
def test_calls_and_content_are_told_apart_however_the_text_is_cut(
    style: str, text: str, content: str, calls: list[tuple[str, str]]
) -> None:
    for pieces in cuts(text):
        assert read(STYLES[style].parser(), pieces) == (content, calls, False), pieces


@pytest.mark.hazard("truncated-tool-call")
@pytest.mark.parametrize(
    ("style", "text"), [(style, text) for style, text, _content, calls in CASES if calls]
)
def test_a_call_cut_anywhere_is_unfinished_or_not_begun(style: str, text: str) -> None:
    whole = read(STYLES[style].parser(), [text])[1]
    for end in range(len(text)):
        _content, calls, unfinished = read(STYLES[style].parser(), [text[:end]])
        for (name, arguments), (whole_name, whole_arguments) in zip(calls, whole, strict=False):
            assert name == whole_name
            assert whole_arguments.startswith(arguments)
        if calls and not unfinished:
            assert isinstance(json.loads(calls[-1][1]), dict)


def test_arguments_flow_while_they_are_written() -> None:
    parser = Hermes().parser()
    assert parser.feed('<tool_call>{"name": "f", "arg') == []
    assert parser.feed('uments": {"a": "long') == [
        CallStart(0, "f"),
        CallArguments(0, '{"a": "long'),
    ]
    assert parser.feed("er") == [CallArguments(0, "er")]
    assert parser.held == 0


@pytest.mark.parametrize(
    ("template", "style"),
    [
        ("{{ '<tool_call>' }}", "hermes"),
        ("{{ '[TOOL_CALLS]' }}", "mistral"),
        ("{{ '<|python_tag|>' }}", "llama"),
        ("{{ '<｜tool▁calls▁begin｜>' }}", "deepseek"),
        ("{{ messages }}", "hermes"),
    ],
)
def test_the_style_is_the_one_the_template_writes(template: str, style: str) -> None:
    assert choose_style(template, ()).name == style


def test_a_template_that_says_nothing_leaves_it_to_the_vocabulary() -> None:
    assert choose_style("{{ messages }}", {"[TOOL_CALLS]"}).name == "mistral"
