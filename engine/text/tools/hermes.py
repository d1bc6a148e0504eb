"""Hermes and Qwen: `<tool_call>` around one JSON object for each call."""

from collections.abc import Sequence

from engine.text.tools.json_calls import JsonCallParser
from engine.text.tools.parser import CallParser
from engine.text.tools.style import Function, Spell, ToolStyle, call_schema, json_rule, rules_of

OPEN, CLOSE = "<tool_call>", "</tool_call>"


class HermesParser(JsonCallParser):
    openers = (OPEN,)

    def _head(self) -> bool:
        begun = self._read_object(len(OPEN))
        return self._refuse() if begun is False else bool(begun)

    def _after(self) -> bool:
        if self._pass(CLOSE) is None:
            return False
        self._state = self._content
        return True


class Hermes(ToolStyle):
    name = "hermes"
    signs = (OPEN,)
    markers = (OPEN, CLOSE)

    def parser(self) -> CallParser:
        return HermesParser()

    def rules(self, functions: Sequence[Function], spell: Spell, *, many: bool) -> str:
        more = ' ("\\n" call)*' if many else ""
        bodies = [
            f'{spell(OPEN)} "\\n" {json_rule(call_schema(function, "arguments"))} '
            f'"\\n" {spell(CLOSE)}'
            for function in functions
        ]
        return f"calls: call{more}\n{rules_of(bodies)}"
